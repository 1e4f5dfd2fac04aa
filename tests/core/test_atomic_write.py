"""Files and folders appear whole or not at all, and what a killed process left is removed by the next."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from gonio import GonioError
from gonio.core import whole_folder as folders
from gonio.core.atomic_write import whole, whole_text
from gonio.core.leftovers import NAME, new_file, new_folder, remove_leftovers
from gonio.core.whole_folder import MARKER, whole_folder


def names(folder):
    return sorted(p.name for p in folder.iterdir())


def test_a_file_appears_when_all_went_well_and_can_be_read_by_others(tmp_path):
    out = tmp_path / "page.html"
    out.write_text("old")
    with whole(out, "test") as beside:
        beside.write_text("new")
        assert out.read_text() == "old"
        assert beside.suffix == ".html"
    assert out.read_text() == "new"
    assert out.stat().st_mode & 0o777 == 0o644
    assert list(tmp_path.iterdir()) == [out]


def test_nothing_is_left_behind_when_it_did_not(tmp_path):
    out = tmp_path / "page.html"
    for what, seen in ((KeyboardInterrupt(), KeyboardInterrupt), (OSError(28, "No space left"), GonioError)):
        with pytest.raises(seen), whole(out, "test") as beside:
            _half(beside, what)
    assert list(tmp_path.iterdir()) == []


def _half(path, then):
    path.write_text("half")
    raise then


def test_what_is_said_to_be_left_is_what_is_left(tmp_path):
    out = tmp_path / "page.html"
    with pytest.raises(GonioError, match="nothing was left behind"), whole(out, "test") as beside:
        _half(beside, OSError(28, "No space left"))
    out.write_text("old")
    with pytest.raises(GonioError, match="what stood there is as it was"), whole(out, "test") as beside:
        _half(beside, OSError(28, "No space left"))
    assert out.read_text() == "old"


def test_the_folder_must_exist_and_the_name_must_be_free_for_a_file(tmp_path):
    with pytest.raises(GonioError, match=r"none does not exist; make it"), whole(tmp_path / "none" / "x", "test"):
        pass
    with pytest.raises(GonioError, match="is a folder"), whole(tmp_path, "test"):
        pass


def test_rights_are_kept_links_are_followed_and_names_may_be_as_long_as_the_disk_allows(tmp_path):
    private = tmp_path / "private.json"
    private.write_text("old")
    private.chmod(0o600)
    (tmp_path / "link.json").symlink_to(private)
    whole_text(tmp_path / "link.json", "new", "test")
    assert (private.read_text(), private.stat().st_mode & 0o777) == ("new", 0o600)
    assert (tmp_path / "link.json").is_symlink()
    for name in ("x" * 250 + ".json", "x." + "y" * 253):
        assert whole_text(tmp_path / name, "new", "test").read_text() == "new"


def test_a_pipe_or_device_gets_the_bytes_and_is_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_text()))
    reader.start()
    whole_text(pipe, "sent", "test")
    reader.join(10)
    assert got == ["sent"]
    assert names(tmp_path) == ["pipe"]
    whole_text("/dev/null", "gone", "test")
    assert not os.path.isfile("/dev/null")
    with pytest.raises(GonioError, match="No space left"):
        whole_text("/dev/full", "x", "test")


def test_half_a_surrogate_pair_is_written_as_the_caller_asks(tmp_path):
    assert whole_text(tmp_path / "a", "a\ud800b", "test").read_text() == "a?b"
    assert whole_text(tmp_path / "b", '"a\ud800b"', "test", lone="backslashreplace").read_text() == '"a\\ud800b"'


KILLED = """
import os, sys
from gonio.core.atomic_write import whole
from gonio.core.whole_folder import whole_folder
if sys.argv[2] == "file":
    with whole(sys.argv[1] + "/out.txt", "test") as t:
        t.write_text("half")
        os.kill(os.getpid(), 9)
with whole_folder(sys.argv[1] + "/out", "test", overwrite=True) as t:
    (t / "half").write_text("half")
    os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_a_killed_process_left_is_removed_by_the_next_write(tmp_path, kind):
    subprocess.run([sys.executable, "-c", KILLED, tmp_path, kind], check=False)
    assert [bool(NAME.fullmatch(n)) for n in names(tmp_path)] == [True]
    whole_text(tmp_path / "another.txt", "new", "test")
    assert names(tmp_path) == ["another.txt"]


def test_what_is_being_written_or_is_not_ours_is_never_removed(tmp_path):
    mine, lock = new_file(tmp_path, ".txt")
    folder, other = new_folder(tmp_path)
    user = tmp_path / ".gonio-1-notes.txt"
    user.write_text("mine")
    link = tmp_path / ".gonio-999999-0123456789abcdef.part"
    link.symlink_to(user)
    before = names(tmp_path)
    remove_leftovers(tmp_path)
    assert names(tmp_path) == before
    os.close(lock)
    os.close(other)
    remove_leftovers(tmp_path)
    assert not mine.exists()
    assert not folder.exists()
    assert link.is_symlink()
    if os.getuid() == 0:
        theirs = tmp_path / ".gonio-999999-0123456789abcdef.part.txt"
        theirs.write_text("another user's")
        os.chown(theirs, 12345, 12345)
        remove_leftovers(tmp_path)
        assert theirs.exists()


def fill(folder, text, **options):
    with whole_folder(folder, "test", **{"overwrite": True} | options) as new:
        (new / "deep").mkdir()
        (new / "deep" / "file").write_text(text)


@pytest.mark.parametrize("exchanged", [True, False])
def test_a_folder_is_replaced_as_a_whole_and_only_where_gonio_wrote_it(tmp_path, monkeypatch, exchanged):
    if not exchanged:
        monkeypatch.setattr(folders, "exchange", lambda *_: False)
    out = tmp_path / "a" / "out"
    for text in ("one", "two"):
        fill(out, text)
        assert names(out) == [MARKER, "deep"]
        assert (out / "deep" / "file").read_text() == text
        assert names(tmp_path / "a") == ["out"]
    (out / "deep" / "mine").write_text("work")
    with pytest.raises(GonioError, match="holds deep/mine, which gonio did not write"):
        fill(out, "three")
    (out / "deep" / "mine").unlink()
    with pytest.raises(GonioError, match="exists"):
        fill(out, "three", overwrite=False)
    (out / MARKER).write_text("[]")
    with pytest.raises(GonioError, match="holds deep/file"):
        fill(out, "three")
    assert (out / "deep" / "file").read_text() == "two"
    with pytest.raises(GonioError, match="is not a folder"):
        fill(out / "deep" / "file", "three")


def test_work_put_into_a_folder_while_it_is_written_anew_is_kept(tmp_path):
    fill(tmp_path / "out", "old")
    with pytest.raises(GonioError, match="holds mine"), whole_folder(tmp_path / "out", "test", overwrite=True):
        (tmp_path / "out" / "mine").write_text("work")
    assert (tmp_path / "out" / "mine").read_text() == "work"
    assert (tmp_path / "out" / "deep" / "file").read_text() == "old"


def test_a_folder_that_fails_leaves_not_even_the_folders_made_for_it(tmp_path):
    with (
        pytest.raises(GonioError, match="nothing was left behind"),
        whole_folder(tmp_path / "a" / "b" / "out", "test", overwrite=False),
    ):
        raise OSError(28, "No space left")
    assert names(tmp_path) == []


def test_a_folder_kept_aside_by_a_killed_process_is_put_back(tmp_path):
    code = (
        "import os, sys\nfrom gonio.core import whole_folder as w\n"
        "w.exchange = lambda *_: False\n"
        "rename = os.rename\n"
        "def once(a, b):\n    rename(a, b)\n    os.kill(os.getpid(), 9)\n"
        "with w.whole_folder(sys.argv[1] + '/out', 'test', overwrite=True) as t:\n"
        "    (t / 'new').write_text('new')\n    os.rename = once\n"
    )
    fill(tmp_path / "out", "old")
    subprocess.run([sys.executable, "-c", code, tmp_path], check=False)
    assert "out" not in names(tmp_path)
    remove_leftovers(tmp_path)
    assert names(tmp_path) == ["out"]
    assert (tmp_path / "out" / "deep" / "file").read_text() == "old"
