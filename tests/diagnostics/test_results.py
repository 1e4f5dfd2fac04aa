"""Every result is frozen, read-only, two lines, plain on demand, drawn and explained."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from gonio import Head, diagnostics

RNG = np.random.default_rng(0)
HEAD = Head(RNG.standard_normal((60, 6)), link="softmax", labels=[f"w{i}" for i in range(60)])
COUNTS = RNG.integers(1, 100, 60)
RESULTS = {
    "hubness": lambda: diagnostics.hubness(HEAD),
    "anisotropy": lambda: diagnostics.anisotropy(HEAD),
    "concentration": lambda: diagnostics.concentration(HEAD, pairs=200),
    "norms": lambda: diagnostics.norms(HEAD, COUNTS),
    "norms alone": lambda: diagnostics.norms(HEAD),
    "frequency bias": lambda: diagnostics.frequency_bias(HEAD, COUNTS),
    "frequency agreement": lambda: diagnostics.frequency_agreement(RNG.uniform(size=60), COUNTS % 2, COUNTS),
    "undertrained": lambda: diagnostics.undertrained(HEAD, [0, 1]),
    "undertrained alone": lambda: diagnostics.undertrained(HEAD),
    "agreement": lambda: diagnostics.agreement(HEAD, HEAD, gauges=1),
    "orbit": lambda: diagnostics.orbit(HEAD, gauges=1),
    "near-duplicates": lambda: diagnostics.near_duplicates(HEAD, 0.5),
}


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_keeps_the_house_rules(name):
    r = RESULTS[name]()
    assert len(repr(r).splitlines()) == 2
    assert repr(r).startswith(type(r).__name__ + "(")
    json.dumps(r.to_dict(), allow_nan=False)
    assert len(r.explain()) > 40
    assert "\n" not in r.explain()
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(r, dataclasses.fields(r)[0].name, None)
    for f in dataclasses.fields(r):
        value = getattr(r, f.name)
        if isinstance(value, np.ndarray):
            assert not value.flags.writeable, f.name
    ax = r.plot()
    ax.figure.canvas.draw()
    assert ax.get_xlabel() or ax.get_ylabel()
