"""Labels are found as people write them, and never taken for one of another text."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gonio import GonioError, Head
from gonio.core.byte_level import CHARACTERS, from_byte_level, to_byte_level
from gonio.core.label_names import LabelNames

BYTE_LEVEL = ["!", "dog", "Ġdog", "Ġcat", "Ċ", "Ã©", "é", "ĠcafÃ©", "Ã", "#2", "Ġ", "ĠĠ"]
PIECES = ["<unk>", "<0x0A>", "<0x61>", "<0xE9>", "▁dog", "▁cat", "dog", "▁café", "ca", "▁", "▁new▁york"]
WORDS = ["dog", "cat", " fish", "naïve", "New York"]


def test_bytes_and_characters_are_one_to_one():
    assert len(set(CHARACTERS)) == 256
    for b in range(256):
        assert from_byte_level(to_byte_level(bytes([b]))) == bytes([b])
    assert not [c for c in CHARACTERS if c.isspace() or not c.isprintable()]


def test_the_characters_are_those_that_byte_level_tokenizers_use():
    pre = pytest.importorskip("tokenizers.pre_tokenizers", reason="tokenizers is not installed; make test installs it")
    assert set(CHARACTERS) == set(pre.ByteLevel.alphabet())
    written = pre.ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str(" café\n\t日")
    assert "".join(piece for piece, _ in written) == to_byte_level(" café\n\t日".encode())


@given(st.text(max_size=12))
def test_any_text_comes_back_from_its_bytes(text):
    raw = text.encode("utf-8", "surrogatepass")
    assert from_byte_level(to_byte_level(raw)) == raw


@pytest.mark.parametrize("labels", [BYTE_LEVEL, PIECES, WORDS], ids=["byte-level", "pieces", "words"])
def test_every_label_is_found_by_its_own_name_and_by_its_number(labels):
    names = LabelNames(labels)
    for i, name in enumerate(labels):
        assert names.index(f"#{i}") == names.find(f"#{i}").row == i
        if name != "#2":  # a text of that form is always a number
            assert names.index(name) == names.find(name).row == i
            assert names.find(name).exact


@given(st.lists(st.text(alphabet="ab Ġ▁Ċ\né#1<0xA>", max_size=5), min_size=1, max_size=12), st.data())
def test_a_label_of_any_vocabulary_is_found_by_its_own_name(labels, data):
    names = LabelNames(labels)
    i = data.draw(st.integers(0, len(labels) - 1))
    assert names.index(f"#{i}") == i
    if labels.count(labels[i]) == 1 and not (labels[i][:1] == "#" and labels[i][1:].isdigit()):
        assert names.index(labels[i]) == i


def texts(name: str) -> set[str]:
    """What a name may stand for, written naively: itself, its marks read as spaces, its characters as bytes."""
    out = {name, name.replace("▁", " ")}
    if name[:3] == "<0x" and name[5:] == ">" and len(name) == 6:
        try:
            raw = bytes([int(name[3:5], 16)])
            out |= {raw.decode("utf-8", "replace"), f"byte {raw.hex()}"}
        except ValueError:
            pass
    if all(c in CHARACTERS for c in name):
        raw = bytes(CHARACTERS.index(c) for c in name)
        out |= {raw.decode("utf-8", "replace"), *([f"byte {raw.hex()}"] if len(raw) == 1 else [])}
    if name.startswith("␣"):
        out.add(name.replace("␣", " "))
    return out


@given(
    st.lists(st.text(alphabet="abĠ▁ĊÃ©é ", min_size=1, max_size=4), min_size=1, max_size=15),
    st.text(alphabet="abĠ▁Ċé \n␣", min_size=1, max_size=4) | st.sampled_from(["<0x0A>", "<0xE9>", "<0x61>", "<0xzz>"]),
)
def test_nothing_is_taken_for_a_label_of_other_text(labels, typed):
    names = LabelNames([*labels, "<0x0A>", "<0xE9>"])
    for ask, loose in ((names.index, False), (lambda t: names.find(t).row, True)):
        try:
            row = ask(typed)
        except GonioError:
            continue
        found, meant = texts(names.labels[row]), texts(typed)
        if loose:
            meant |= {" " + t for t in meant} | {t[1:] for t in meant if t.startswith(" ")}
        assert found & meant


@pytest.mark.parametrize(
    ("labels", "typed", "name"),
    [
        (BYTE_LEVEL, " dog", "Ġdog"),
        (BYTE_LEVEL, "▁dog", "Ġdog"),
        (BYTE_LEVEL, "␣dog", "Ġdog"),
        (BYTE_LEVEL, "\n", "Ċ"),
        (BYTE_LEVEL, "<0x0A>", "Ċ"),
        (BYTE_LEVEL, "<0xc3>", "Ã"),
        (BYTE_LEVEL, " café", "ĠcafÃ©"),
        (BYTE_LEVEL, " ", "Ġ"),
        (BYTE_LEVEL[:6], "é", "Ã©"),
        (PIECES, " dog", "▁dog"),
        (PIECES, "Ġdog", "▁dog"),
        (PIECES, "ĠcafÃ©", "▁café"),
        (PIECES, " new york", "▁new▁york"),
        (PIECES, "\n", "<0x0A>"),
        (PIECES, "a", "<0x61>"),
        (PIECES, "<0x0a>", "<0x0A>"),
        (WORDS, "␣fish", " fish"),
    ],
)
def test_one_text_in_another_spelling_is_found_also_from_python(labels, typed, name):
    head = Head(np.eye(len(labels)), link="softmax", labels=labels)
    assert head.labels[head.index(typed)] == name
    assert not head.names.find(typed).exact


@pytest.mark.parametrize(
    ("labels", "typed", "name"),
    [(BYTE_LEVEL, "cat", "Ġcat"), (BYTE_LEVEL, "café", "ĠcafÃ©"), (PIECES, "café", "▁café"), (WORDS, " dog", "dog")],
)
def test_a_word_finds_the_label_that_begins_with_a_space_only_where_it_can_be_said(labels, typed, name):
    names = LabelNames(labels)
    assert names.labels[names.find(typed).row] == name
    with pytest.raises(GonioError, match=r"did you mean .* \(#\d+\)"):
        names.index(typed)


def test_an_exact_name_wins_and_the_others_are_told():
    found = LabelNames(BYTE_LEVEL).find("dog")
    assert (found.row, found.exact, found.others) == (1, True, (2,))
    found = LabelNames(BYTE_LEVEL).find("é")
    assert (found.row, found.exact, found.others) == (6, True, (5,))


@pytest.mark.parametrize(
    ("labels", "typed", "said"),
    [
        (["Ġdog", "▁dog"], " dog", r"2 may be meant: 'Ġdog' \(#0\), '▁dog' \(#1\)"),
        (["Ġdog", "▁dog"], "dog", r"2 may be meant: 'Ġdog' \(#0\), '▁dog' \(#1\)"),
        (["Ġdog", "a", "Ġdog"], " dog", r"2 may be meant: 'Ġdog' \(#0\), 'Ġdog' \(#2\)"),
        (["a", "b", "a"], "a", r"2 labels are called 'a' \(rows 0, 2\)"),
        (["#7", "b"], "#7", "label 7 is out of range"),
        (["é", "b"], "<0xE9>", "no label is called"),
        (["<0xE9>", "b"], "é", "no label is called"),
        (["<0x05>", "▁b"], "ą", "no label is called"),
        (["p\u0430y", "b"], "pay", r"did you mean 'p\u0430y \(U\+0430\)' \(#0\)"),
    ],
)
def test_what_is_not_one_label_is_an_error_with_the_candidates(labels, typed, said):
    names = LabelNames(labels)
    with pytest.raises(GonioError, match=said):
        names.find(typed)
    with pytest.raises(GonioError):
        names.index(typed)


def test_a_label_called_like_a_number_is_reached_by_its_own():
    head = Head(np.eye(3), link="softmax", labels=["#1", "b", "#2"])
    assert head.index("#1") == 1
    assert head.index("#0") == 0
