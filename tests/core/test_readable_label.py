"""Labels are shown so that nothing in them is hidden or taken for something else."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gonio.core.readable_label import look_alikes, quoted, readable


@pytest.mark.parametrize(
    ("label", "shown"),
    [
        ("dog", "dog"),
        (" dog", "␣dog"),
        ("  dog ", "␣␣dog␣"),
        ("   ", "␣␣␣"),
        ("New York", "New York"),
        ("Ġdog", "Ġdog"),
        ("▁dog", "▁dog"),
        ("ĠcafÃ©", "ĠcafÃ©"),
        ("naïve", "naïve"),
        ("собака", "собака"),
        ("日本", "日本"),
        ("हिन्दी", "हिन्दी"),
        ("\u0430", "\u0430 (U+0430)"),
        ("p\u0430ypal", "p\u0430ypal (U+0430)"),
        ("\uff44\uff4f\uff47", "\uff44\uff4f\uff47 (U+FF44, U+FF4F, U+FF47)"),
        ("\U0001d41a", "\U0001d41a (U+1D41A)"),
        ("e\u0301", "e\u0301 (U+0301)"),
        ("don\u2019t", "don\u2019t (U+2019)"),
        ("a\u2212b", "a\u2212b (U+2212)"),
        ("␣", "␣ (U+2423)"),
        ("\u3164", "\u3164 (U+3164)"),
        ("\n", "\\n"),
        ("a\x1b[31m", "a\\x1b[31m"),
        ("a\u200bb", "a\\u200bb"),
        ("a\xa0b", "a\\xa0b"),
        ("\u202eabc", "\\u202eabc"),
        ("half \ud800", "half \\ud800"),
    ],
)
def test_a_label_is_shown_with_what_it_hides(label, shown):
    assert readable(label) == shown


@given(st.text(max_size=20))
def test_what_is_shown_is_one_line_without_hidden_characters(label):
    shown = readable(label)
    assert shown.isprintable()
    assert "\n" not in shown
    assert shown == shown.strip() or not shown


@given(
    st.text(alphabet=st.characters(codec="ascii", exclude_characters=" ", categories=("L", "N", "P", "S")), min_size=1)
)
def test_plain_names_are_shown_as_they_are(label):
    assert readable(label) == label


@given(st.text(min_size=1, max_size=8))
def test_what_could_be_read_as_ascii_is_not_shown_bare(label):
    """By a second writing: a label whose compatibility form is ASCII letters, and which is not, has a code point."""
    plain = unicodedata.normalize("NFKC", label)
    if plain.isascii() and plain.isalnum() and len(plain) == len(label) and plain != label and label.isalnum():
        assert "(U+" in readable(label)


def test_only_a_few_code_points_are_told_and_quotes_follow_the_label():
    assert readable("".join(chr(0xFF41 + i) for i in range(9))).endswith("(U+FF41, U+FF42, U+FF43, U+FF44, ...)")
    assert look_alikes("abc") == []
    assert quoted("it's") == '"it\'s"'
    assert quoted(" a") == "'␣a'"
