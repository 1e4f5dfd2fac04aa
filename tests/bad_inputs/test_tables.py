"""Tables that users give beside the model are read as carefully as the model: one sentence, whatever is in them."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pytest
from click.testing import CliRunner

import gonio
from gonio import GonioError, Head
from gonio.cli import main
from gonio.core.unpack_limit import DEFAULT, set_unpack_limit
from gonio.diagnostics import concentration, norms
from gonio.findings.anomalies import odd
from gonio.findings.subject import Subject
from gonio.remedies import unit_rows

rng = np.random.default_rng(0)


def npy(header: str, body: bytes = b"\0" * 256) -> bytes:
    raw = header.encode() + b" " * 20 + b"\n"
    return b"\x93NUMPY\x01\x00" + len(raw).to_bytes(2, "little") + raw + body


def claiming(shape: str, descr: str = "<f8") -> bytes:
    return npy(f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}")


def archive(**arrays: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.savez(out, **arrays)  # type: ignore[arg-type]
    return out.getvalue()


BAD = {
    "more than there is": claiming("(1000000000000, 4)"),
    "more than numbers hold": claiming(f"({10**30}, 4)"),
    "a truth value for a length": claiming("(True, 4)"),
    "a negative length": claiming("(-1, 4)"),
    "no rows": claiming("(0, 4)"),
    "one number": claiming("()"),
    "text": claiming("(4,)", "<U4"),
    "objects": claiming("(4,)", "|O"),
    "an unfinished header": npy("{'descr': '<f8', 'shape': (4, 4), '''"),
    "not a number": npy("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 4), }", np.full(8, np.nan).tobytes()),
    "an archive": archive(W=np.eye(3)),
    "no array": b"hello",
    "nothing": b"",
    "no such file": None,
}
OPTIONS = [
    ["audit", "m.npz", "--embeddings", "X"],
    ["alike", "m.npz", "a", "b", "--embeddings", "X"],
    ["similar", "m.npz", "a", "--embeddings", "X"],
    ["diagnose", "m.npz", "--frequencies", "X"],
    ["audit", "m.npz", "--frequencies", "X"],
    ["info", "m.npz", "--inputs", "observed:X"],
    ["info", "m.npz", "--labels", "X"],
    ["audit", "--users", "X", "--items", "X"],
    ["audit", "--users", "u.npy", "--items", "u.npy", "--popularity", "X"],
    ["factors", "dropout", "--data", "X"],
    ["factors", "dropout", "--data", "X.npz"],
]


@pytest.mark.parametrize("what", BAD)
def test_a_bad_table_is_one_sentence_wherever_it_is_given(what, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("m.npz", W=rng.standard_normal((9, 4)), labels=np.array(list("abcdefghi")))
    np.save("u.npy", rng.standard_normal((9, 4)))
    if BAD[what] is not None:
        for name in ("X.npy", "X.npz"):
            (tmp_path / name).write_bytes(BAD[what])
    for line in OPTIONS:
        line = [x.replace("X", "X.npy") if not x.endswith(".npz") else x for x in line]
        done = CliRunner().invoke(main, line)
        assert done.exit_code == 2, (line, done.output)
        assert isinstance(done.exception, SystemExit), line
        assert done.output.startswith("gonio: "), line
        assert done.output.count("\n") == 1, line


def test_indices_of_interactions_beyond_their_shape_are_refused(tmp_path):
    parts = {
        "format": np.array(b"csr"),
        "shape": np.array([3, 3]),
        "data": np.ones(3),
        "indptr": np.array([0, 1, 2, 3]),
    }
    np.savez(tmp_path / "x.npz", indices=np.array([0, 1, 10**9]), **parts)  # type: ignore[arg-type]
    done = CliRunner().invoke(main, ["factors", "dropout", "--data", str(tmp_path / "x.npz")])
    assert done.exit_code == 2
    assert "cannot be read as interactions" in done.output


def test_interactions_that_claim_very_many_users_are_refused(tmp_path):
    parts = {"format": np.array(b"coo"), "data": np.ones(1), "row": np.zeros(1, int), "col": np.zeros(1, int)}
    for shape in ([10**9, 3], [3, 10**9], [10**18, 10**18]):
        np.savez(tmp_path / "x.npz", shape=np.array(shape), **parts)  # type: ignore[arg-type]
        done = CliRunner().invoke(main, ["factors", "dropout", "--data", str(tmp_path / "x.npz")])
        assert done.exit_code == 2
        assert "--unpack-limit" in done.output
        assert done.output.count("\n") == 1


@pytest.mark.parametrize(
    "spelling", ["observed:{}", " observed:{}", "\tobserved:{}", "observed :{}", "\u2003observed:{}"]
)
def test_a_model_file_never_makes_gonio_open_another(spelling, tmp_path):
    np.save(tmp_path / "secret.npy", np.eye(3))
    np.savez(tmp_path / "m.npz", W=np.eye(3), inputs=np.array(spelling.format(tmp_path / "secret.npy")))
    assert gonio.load(tmp_path / "m.npz").inputs == gonio.AllInputs()
    assert isinstance(
        gonio.load(tmp_path / "m.npz", inputs=f"observed:{tmp_path / 'secret.npy'}").inputs, gonio.Observed
    )


def test_text_with_numbers_that_are_no_characters_is_said(tmp_path):
    for kind in ("<U1", ">U1"):
        bad = np.frombuffer(np.array([0x110000, 65, 66], np.dtype("u4").newbyteorder(kind[0])).tobytes(), kind)
        np.savez(tmp_path / "m.npz", W=np.eye(3), labels=bad)
        with pytest.raises(GonioError, match="numbers that are no characters"):
            gonio.load(tmp_path / "m.npz")


def test_rows_of_length_one_are_diagnosed_audited_and_drawn():
    head = unit_rows(Head(rng.standard_normal((60, 30)), link="softmax"))
    assert np.ptp(head.norms) > 0  # equal but for rounding, which is what numpy's bins cannot split
    counts, _ = norms(head).histogram
    assert counts.sum() == counts.max() == 60
    norms(head).plot()
    concentration(head).plot()
    assert next(f for f in odd(Subject.of(head)) if f.key == "norms").data["histogram"]["counts"]


def bomb(path, **members):
    """A .npz whose members are deflated zeros: (type, shape) each, however large."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as z:
        for name, (kind, shape) in members.items():
            with z.open(f"{name}.npy", "w", force_zip64=True) as f:
                about = {"descr": kind, "fortran_order": False, "shape": shape}
                np.lib.format.write_array_header_1_0(f, about)
                left = int(np.prod(shape)) * np.dtype(kind).itemsize
                while left:
                    left -= f.write(bytes(min(left, 1 << 24)))


def test_what_unpacks_beyond_the_limit_is_refused_before_it_is_unpacked(tmp_path):
    bomb(tmp_path / "m.npz", W=("<f4", (1_000_000, 16)), labels=("<U1", (1_000_000,)))
    line = ["info", str(tmp_path / "m.npz")]
    for limit, said in (("0.05", "m.npz[W] would unpack"), ("0.065", "m.npz[labels] would unpack")):
        done = CliRunner().invoke(main, ["--unpack-limit", limit, *line])
        assert done.exit_code == 2
        assert said in done.output
        assert "--unpack-limit" in done.output
    assert CliRunner().invoke(main, ["--unpack-limit", "-1", *line]).exit_code == 2
    set_unpack_limit(DEFAULT)


def test_labels_that_are_not_one_a_row_are_not_even_read(tmp_path):
    bomb(tmp_path / "m.npz", W=("<f4", (3, 2)), labels=("<U1", (1_000_000,)))
    with pytest.raises(GonioError, match="1,000,000 labels and 3 rows"):
        gonio.load(tmp_path / "m.npz")


def test_a_damaged_archive_is_one_sentence_also_as_a_proof(tmp_path):
    np.savez(tmp_path / "m.npz", W=np.eye(3))
    np.savez_compressed(tmp_path / "p.npz", format=np.arange(1000), order=np.arange(1000))
    raw = bytearray((tmp_path / "p.npz").read_bytes())
    raw[200:400] = b"\xff" * 200
    (tmp_path / "p.npz").write_bytes(raw)
    done = CliRunner().invoke(main, ["verify", str(tmp_path / "m.npz"), str(tmp_path / "p.npz")])
    assert done.exit_code == 2, done.exception
    assert done.output.count("\n") == 1
