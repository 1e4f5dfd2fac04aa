"""Head: what it keeps, what it refuses, what it computes."""

from __future__ import annotations

import pickle

import ml_dtypes
import numpy as np
import pytest
from scipy.special import expit, softmax

from gonio import AfterLayerNorm, AfterRMSNorm, Box, GonioError, Head, Nonnegative, Source
from gonio.core.row_table import RowTable

W = np.array([[1, 0.5], [0.5, 1], [-1, 0.4], [-0.8, -0.8], [0.9, -1.2]])  # the five labels of Fig. 1
NAMES = ["dog", "cat", "fish", "Ġdog", "Ġhouse"]
head = Head(W, link="softmax", labels=NAMES)


def test_float_types_are_kept_as_given():
    for kind in (np.float32, np.float64):
        assert Head(W.astype(kind), link="softmax").W.dtype == kind
    assert Head(np.arange(6).reshape(3, 2), link="softmax").W.dtype == np.float64


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_narrow_types_are_stored_narrow_and_widened_exactly(name):
    kind = np.dtype(getattr(ml_dtypes, name, name))
    narrow = W.astype(kind)
    h = Head(narrow, link="softmax")
    assert h.rows.stored.dtype == kind
    assert h.W.dtype == np.float32
    assert np.array_equal(h.W, narrow.astype(np.float32))
    assert np.array_equal(h["1"], narrow[1].astype(np.float32))


def test_the_caller_cannot_change_the_head_afterwards():
    mine = W.copy()
    h = Head(mine, np.zeros(5), link="softmax")
    before = h.digest
    mine[0, 0] = 77
    assert h.W[0, 0] == 1
    with pytest.raises(ValueError, match="read-only"):
        h.W[0, 0] = 3
    with pytest.raises(ValueError, match="read-only"):
        h.bias[0] = 3
    with pytest.raises(AttributeError, match="immutable"):
        h.link = "sigmoid"
    with pytest.raises(AttributeError, match="immutable"):
        del h.link
    assert Head(W, np.zeros(5), link="softmax").digest == before


def test_what_is_already_read_only_is_shared_not_copied():
    fixed = W.copy()
    fixed.flags.writeable = False
    assert np.shares_memory(Head(fixed, link="softmax").W, fixed)
    writable = W.copy()
    view = writable[:]
    view.flags.writeable = False  # read-only itself, and yet it can change under us
    assert not np.shares_memory(Head(view, link="softmax").W, writable)


def test_logits_are_w_f_plus_b():
    rng = np.random.default_rng(0)
    b, F = rng.standard_normal(5), rng.standard_normal((7, 2))
    h = head.replace(bias=b)
    assert np.allclose(h.logits(F), F @ W.T + b, rtol=1e-15, atol=1e-15)
    assert h.logits(F[0]).shape == (5,)
    assert np.array_equal(h.logits(F[0]), h.logits(F[:1])[0])
    capped = h.replace(softcap=2.0)
    assert np.allclose(capped.logits(F), 2 * np.tanh((F @ W.T + b) / 2))


def test_probabilities_follow_the_link():
    F = np.random.default_rng(1).standard_normal((9, 2)) * 300  # large enough to overflow a careless exp
    assert np.allclose(head.probabilities(F), softmax(F @ W.T, axis=1), atol=1e-12)
    assert np.allclose(head.replace(link="sigmoid").probabilities(F), expit(F @ W.T), atol=1e-12)
    for link in ("dot", "cosine"):
        with pytest.raises(GonioError, match="gives no probabilities"):
            head.replace(link=link).probabilities(F)


def test_logits_of_a_cosine_head_are_cosines():
    f = np.array([3.0, 4.0])
    want = [w @ f / np.linalg.norm(w) / 5 for w in W]
    assert np.allclose(head.replace(link="cosine").logits(f), want)
    with pytest.raises(GonioError, match="zero"):
        head.replace(link="cosine").logits(np.zeros(2))


def test_logits_come_in_float32_only_if_everything_is():
    low = Head(W.astype(np.float16), link="softmax")
    assert low.logits(np.ones((2, 2), np.float32)).dtype == np.float32
    assert low.logits(np.ones((2, 2))).dtype == np.float64
    assert head.logits(np.ones((2, 2), np.float32)).dtype == np.float64


def test_a_label_is_found_by_name_and_by_number():
    assert np.array_equal(head["cat"], W[1])
    assert np.array_equal(head[1], W[1])
    assert np.array_equal(head[np.int64(1)], W[1])
    assert head.index(" house") == 4  # a leading space is how tokenizers write the start of a word


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("dgo", "did you mean 'dog'"),
        ("house", "did you mean 'Ġhouse'"),
        ("Cat", "did you mean 'cat'"),
        ("xylophone", "the head has labels 0 to 4"),
        (5, "out of range"),
        (-1, "out of range"),
        (True, "not a bool"),
        (1.5, "not a float"),
    ],
)
def test_a_label_that_is_not_there_is_answered_with_help(asked, said):
    with pytest.raises(GonioError, match=said):
        head[asked]


def test_a_name_that_occurs_twice_must_be_given_as_a_number():
    with pytest.raises(GonioError, match=r"2 labels are called 'a' \(rows 0, 2\)"):
        Head(W[:3], link="softmax", labels=["a", "b", "a"])["a"]


def test_digest_depends_on_values_and_not_on_storage():
    half = W.astype(np.float16)
    same = [half, half.astype(np.float32), half.astype(np.float64), np.asfortranarray(half.astype(np.float32))]
    digests = {Head(w, link="softmax").digest for w in same}
    assert len(digests) == 1
    zero = np.array([[0.0, 1], [1, 0]])
    assert Head(zero, link="softmax").digest == Head(np.where(zero == 0, -0.0, zero), link="softmax").digest
    assert head.replace(labels=list("abcde")).digest == head.digest


def test_digest_sees_every_part_that_decides():
    variants = [
        head,
        head.replace(link="sigmoid"),
        head.replace(bias=np.zeros(5)),
        head.replace(bias=np.arange(5.0)),
        head.replace(softcap=30),
        head.replace(inputs=Nonnegative()),
        head.replace(inputs=Box(-1, 1)),
        head.replace(inputs=Box(-1, 2)),
        head.replace(inputs=AfterRMSNorm(np.ones(2))),
        head.replace(inputs=AfterLayerNorm(np.ones(2))),
        head.replace(inputs=AfterLayerNorm(np.ones(2), np.ones(2))),
        head.replace(W=W + np.eye(5, 2) * 1e-15),
        head.replace(W=W[::-1]),
    ]
    assert len({h.digest for h in variants}) == len(variants)


def test_digest_is_stable_across_versions():
    """Saved proofs name it: a change here needs a new version of the proof format."""
    assert Head([[1, 2], [3, 4]], link="softmax").digest == (
        "5c3051cbb6d5b54451e6da91d3678203acf8b5c57f125e924649b88696bb8b3d"
    )


def test_norms_zero_rows_and_twins_are_found():
    M = np.array([[0.0, 0, 0], [1, 2, 2], [-0.0, 0, 0], [1, 2, 2], [1e-200, 0, 0], [3e200, 4e200, 0]])
    h = Head(M, link="softmax")
    assert np.allclose(h.norms, [0, 3, 0, 3, 1e-200, 5e200], rtol=1e-15)
    assert h.zero_rows.tolist() == [0, 2]
    assert [g.tolist() for g in h.twins] == [[0, 2], [1, 3]]  # -0.0 equals 0.0
    other = h.replace(bias=[0, 0, 0, 1, 0, 0])
    assert [g.tolist() for g in other.twins] == [[0, 2]]  # the same row with another bias is no twin


def test_twins_are_found_among_many_rows_of_every_type():
    rng = np.random.default_rng(3)
    big = rng.standard_normal((5000, 33))
    big[4321] = big[7]
    big[99] = big[7]
    for kind in (np.float64, np.float32, np.float16, ml_dtypes.bfloat16):
        assert [g.tolist() for g in Head(big.astype(kind), link="softmax").twins] == [[7, 99, 4321]]


def test_a_head_survives_pickling():
    h = head.replace(bias=np.arange(5.0), inputs=Nonnegative(), source=Source("x", "npz", padded=(4,)))
    again = pickle.loads(pickle.dumps(h))
    assert again.digest == h.digest
    assert again.labels == h.labels
    assert again.padded.tolist() == [4]


def test_repr_has_two_lines():
    assert repr(head).startswith("Head(5 labels x 2, softmax, float64)\n")
    assert len(repr(head).splitlines()) == 2


def test_packed_rows_are_unpacked_a_block_at_a_time():
    seen = []

    def unpack(stored, which):
        seen.append(len(stored))
        return stored.astype(np.float32) * np.float32(0.5)

    stored = np.random.default_rng(0).integers(-128, 128, (100_000, 16), dtype=np.int8)
    rows = RowTable(stored, unpack=unpack)
    h = Head(rows, link="softmax")
    assert max(seen) <= rows.block_size() < 100_000
    assert np.array_equal(h[5], stored[5] * np.float32(0.5))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (dict(W=np.ones((5, 3)), bias=np.ones(4)), r"W has shape \(5, 3\) and bias has shape \(4,\).*so shape \(5,\)"),
        (dict(W=np.ones(5)), r"shape \(5,\); two axes"),
        (dict(W=np.ones((2, 2, 2))), "two axes"),
        (dict(W=np.ones((0, 3))), "empty"),
        (dict(W=np.ones((3, 0))), "empty"),
        (dict(W=[[1, 2], [3]]), "not an array of numbers"),
        (dict(W=[["a", "b"]]), "dtype <U1"),
        (dict(W=np.array([[object()]])), "dtype object.*never unpickled"),
        (dict(W=np.ones((2, 2)) * 1j), "dtype complex128"),
        (dict(W=[[1, np.nan], [0, 1]]), r"W\[0, 1\] is nan"),
        (dict(W=[[1, 2], [np.inf, 1]]), r"W\[1, 0\] is inf"),
        (dict(W=np.ones((2, 2)), bias=[0, np.nan]), r"bias\[1\] is nan"),
        (dict(W=np.ones((2, 2)), link="sofmax"), "link is 'sofmax'; choose one of"),
        (dict(W=np.ones((2, 2)), labels=["a"]), "1 labels were given for 2 rows"),
        (dict(W=np.ones((2, 2)), labels="ab"), "a sequence of 2 names"),
        (dict(W=np.ones((2, 2)), labels=7), "a sequence of 2 names"),
        (dict(W=np.ones((2, 2)), inputs=AfterRMSNorm(np.ones(3))), "have width 3"),
        (dict(W=np.ones((2, 2)), inputs=3), "inputs: a int was given"),
        (dict(W=np.ones((2, 2)), softcap=-1), "softcap is -1.0"),
        (dict(W=np.ones((2, 2)), softcap=np.nan), "softcap is nan"),
        (dict(W=np.ones((2, 2)), softcap=[]), r"softcap is \[\]; a positive number is needed, or None for none"),
        (dict(W=np.ones((2, 2)), softcap=""), "softcap is ''; a positive number"),
        (dict(W=np.ones((2, 2)), softcap=True), "softcap is True; a positive number"),
        (dict(W=np.ones((2, 2)), softcap=10**5000), "softcap is inf"),
        (dict(W=np.ones((2, 2)), trained="dropout"), "trained is 'dropout'"),
        (dict(W=np.ones((2, 2)), source=Source("x", "y", padded=(2,))), "names row 2"),
    ],
)
def test_bad_parts_are_refused_in_one_sentence(arguments, said):
    with pytest.raises(GonioError, match=said):
        Head(**({"link": "softmax"} | arguments))


@pytest.mark.parametrize("F", [np.ones((3, 5)), np.ones((1, 1, 2)), [[1, np.nan]], [], [["a", "b"]]])
def test_embeddings_of_another_width_or_kind_are_refused(F):
    with pytest.raises(GonioError, match=r"Head\.logits"):
        head.logits(F)


def test_replace_refuses_unknown_parts():
    with pytest.raises(GonioError, match="no part is called 'weights'"):
        head.replace(weights=W)
