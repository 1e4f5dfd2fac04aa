"""Cranfield 1400 with MiniLM: the numbers that its notes give as a check, and what the remedies do to them."""

from __future__ import annotations

import pytest

import gonio
from gonio.embeddings import table_of
from tests.embeddings import cranfield

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def found():
    X, Q = cranfield.embeddings()
    tables = (table_of(x, ids=cranfield.numbered(len(x))) for x in (X, Q))
    return gonio.check(*tables, qrels=cranfield.qrels(), gains="exponential", cheaper=True)


def test_the_collection_is_read_as_its_notes_say():
    texts = cranfield.records("cran.all.1400")
    assert len(texts) == 1400
    assert [i + 1 for i, t in enumerate(texts) if not t] == [471, 995]
    assert len(cranfield.records("cran.qry")) == 225


def test_ndcg_is_that_of_the_notes(found):
    means = found["retrieval"].data["means"]
    assert means["cosine"]["ndcg"] == pytest.approx(0.389, abs=0.003)
    assert means["dot"]["ndcg"] == pytest.approx(0.233, abs=0.003)
    assert means["centred"]["ndcg"] == pytest.approx(0.383, abs=0.003)


def test_the_dot_product_of_unnormalised_means_hurts_and_is_said_to(found):
    verdicts = {x["name"]: x["verdict"] for x in found["remedies"].data["compared"]}
    assert verdicts["dot"] == "worse"
    assert verdicts["centred"] != "better"
