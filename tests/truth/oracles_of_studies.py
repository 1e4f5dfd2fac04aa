"""What the sentences of the studies claim, read from their words and computed again from the numbers, in other code.

An oracle gets a study's printed sentence and its numbers by name and says whether every claim in it is so. It shares no
code with the studies: thresholds are written here once more.
"""

from __future__ import annotations

import re

from tests.truth.numbers_in_text import numbers


def close(printed: float, value: float, digits: int) -> bool:
    return abs(printed - value) <= 0.5 * 10**-digits + 1e-9


def p_of(how: str) -> float:
    return float(re.search(r"p (\d\.\d+)", how)[1])


def clear(m, x, side):
    """Whether the whole interval of a number lies above (1) or below (-1) x."""
    low, high = (m["value"], m["value"]) if m["low"] is None else (m["low"], m["high"])
    return low > x if side > 0 else high < x


def random(said, against, n):
    names = ["spread", "nearest", "hubs", "own way", "margin", "can tie"]
    differ = lambda kind: [s for s in names if p_of(n[f"{s}, random ({kind})"]["how"]) <= 0.00851]  # noqa: E731  0.05 / 6
    apart, still = differ("spectrum and sizes"), differ("spectrum, sizes and frequency")
    told = re.match(r"(\d) of 6 statistics differs? .*? \((.*?)\)", said)
    assert (told is None) == (not apart)
    if told:
        assert (int(told[1]), told[2].split(", ")) == (len(apart), apart)
    kept = re.search(r"kept too, (\w+) of 6 (?:is shown to differ|differs? \((.*?)\))\.", said)
    assert kept[1] == str(len(still) or "none")
    assert (kept[2] or "").split(", ") == (still or [""])
    gone = re.search(r"may be the reason for: (.*?)\.", said)
    assert (gone[1].split(", ") if gone else []) == [s for s in apart if s not in still]
    assert against == ""
    if "stored cosines" not in n:
        assert "convention" not in said
        return
    share = sum(n[k]["value"] for k in ("offset", "covariance") if k in n) / n["stored cosines"]["value"]
    assert f"{share:.0%} is due to" in said


def geometry(said, against, n):
    stored = n["stored cosines"]
    first = numbers(said.split(";")[0])
    assert all(close(x, stored[k], 3) for x, k in zip(first, ("value", "low", "high"), strict=True))
    assert ("(proven, approached)" in said) == ("supremum" in n)
    if "lowest found" in n:
        assert close(numbers(said.split("run from")[1])[0], n["lowest found"]["value"], 3)
        assert n["lowest found"]["value"] < stored["value"]
        if "supremum" in n:
            assert n["highest form shown"]["value"] > 0.99
    else:
        assert "no equivalent form of these tables that moves it is known" in said
    if "logits" not in n:
        assert "logits" not in said
        assert against == ""
        return
    held = n.get("logits, frequency and length held", n["logits"])
    assert ("The models do agree" in said) == clear(held, 0, 1)
    assert ("is not shown" in said) != clear(held, 0, 1)
    more = stored["low"] > n["logits"]["high"]
    less = stored["high"] < n["logits"]["low"]
    assert ("agree more" in against, "hide agreement" in against, against == "") == (more, less, not (more or less))


def bias(said, against, n):
    a, f, z = (n[f"all pairs: {k}"]["value"] for k in ("stored", "frequency held", "logits"))
    assert all(close(x, y, 2) for x, y in zip(numbers(said)[:3], (a, f, z), strict=True))
    kind = (
        "is frequency." if a - f > 0.1 else "less than" if z - a > 0.1 else "more than" if a - z > 0.1 else "about as"
    )
    assert kind in said
    A, Z = n["all pairs: stored"], n["all pairs: logits"]
    assert bool(against) == (A["high"] < Z["low"] or A["low"] > Z["high"])


def runs(said, against, n):
    if n["pairs of runs that predict equally well"]["value"] == 0:
        assert said.startswith("No two runs")
        return
    c, z = n["equal runs: cosines"], n["equal runs: logits"]
    share = n["pairs whose logits agree more than their cosines"]["value"]
    wanted = [c["value"], c["low"], c["high"], z["value"], z["low"], z["high"]]
    assert all(close(x, y, 2) for x, y in zip(numbers(said)[:6], wanted, strict=True))
    assert ("the ambiguity arises" in said) == (share > 0.5 and z["value"] - c["value"] > 0.05)
    assert ("training fixes cosines better" in said) == (share < 0.5 and c["value"] - z["value"] > 0.05)
    plain = n.get("plain, seeds: cosines")
    worse = [w for w in ("LayerNorm", "cosine loss")
             if plain and f"{w}, seeds: cosines" in n and n[f"{w}, seeds: cosines"]["high"] < plain["low"]]  # fmt: skip
    assert bool(against) == bool(worse)
    assert all(f"{w} {n[f'{w}, seeds: cosines']['value']:.2f}" in against for w in worse)


def frequency(said, against, n):
    assert close(numbers(said)[0], n["norm and frequency"]["value"], 2)
    forms, spread = n.get("norm and frequency in equivalent forms"), n.get("logit spread and frequency")
    assert ("a convention" in said) == bool(forms and forms["low"] < 0 < forms["high"])
    assert ("without states" in said) == (spread is None)
    if spread is not None:
        assert ("What survives" in said) == (clear(spread, 0, 1) or clear(spread, 0, -1))
    kinds = [k for k in ("cosine", "logit correlation") if f"{k} beyond people, tenth 3" in n]
    assert ("by tenths of frequency" in said) == bool(kinds)
    for kind in kinds:
        told = re.search(rf"the {kind} (lies|is not)([^;]*?)[;.]", said)[0]
        tenths = {
            int(re.search(r"tenth (\d+)", k)[1]): m for k, m in n.items() if k.startswith(f"{kind} beyond people")
        }
        assert sorted(tenths) == list(range(1, 11))
        for side, word in ((1, "above"), (-1, "below")):
            named = re.search(rf"{word} it in ([\d, ]*\d)", told)
            listed = [int(x) for x in named[1].split(", ")] if named else []
            assert listed == [k for k in range(1, 11) if clear(tenths[k], 0, side)]
    slope = n.get("slope of cosine on frequency")
    assert ("rarer here" in against) == clear(n["norm and frequency"], 0, -1)
    assert ("the cosine rises" in against) == bool(slope and clear(slope, 0, 1))


def failures(said, against, n):
    kinds = [k.removesuffix(", cosine") for k in n if k.endswith(", cosine")]
    for k in kinds:
        m = n[f"{k}, cosine"]
        told = f"{k} {m['value']:.0%}"
        bad, good = clear(m, 0.5, 1), clear(m, 0.5, -1)
        more = said.partition("It fails in less than half")[0] if "there the source agrees" in said else ""
        assert (told in more.partition("there the source agrees")[0]) == bad
        assert (f"{k} fails in {m['value']:.0%}" in against) == good
        for r in {x.removeprefix(f"{k}, ") for x in n if x.startswith(f"{k}, ")} - {"cosine"}:
            helps = bad and clear(n[f"{k}, {r}"], m["low"], -1)
            assert (f"{r} for {k}" in said) == helps


def windows(said, against, n):
    cells = [(n[k], n[k.replace(": observed", ": random")]) for k in n if k.endswith(": observed")]
    free = [c for c in cells if c[0]["value"] == 1 and c[1]["value"] == 1]
    some = [c for c in cells if c not in free and max(c[0]["value"], c[1]["value"]) > 0]
    assert numbers(said)[:2] == [len(free), len(cells)]
    assert bool(against) == bool(free)
    if not some:
        assert "nothing tells" in said
        return
    more = sum(clear(a, b["high"], 1) for a, b in some)
    less = sum(clear(a, b["low"], -1) for a, b in some)
    assert numbers(said)[2:5] == [len(some), more, less]
    kind = "makes room for what occurs (" if more > less else "harder" if less > more else "is not shown"
    assert kind in said


def plausible(said, against, n):
    a, b, c = (n[f"winners: {k}"]["value"] for k in ("possible", "plausible", "seen"))
    r = [n[f"rankings: {k}"]["value"] for k in ("possible", "plausible", "seen")]
    told = [float(x) for x in re.findall(r"(\d+)%", said)]
    assert all(close(x, 100 * y, 0) for x, y in zip(told, (a, b, c, *r), strict=True))
    kind = "excludes much" if a - b > 0.05 else "excludes little" if b - c > 0.05 else "nearly the same"
    assert kind in said
    assert bool(against) == (n["winners: possible"]["low"] > n["winners: plausible"]["high"])


def downstream(said, against, n):
    verdicts = {k: m["how"].rsplit(": ", 1)[1] for k, m in n.items() if k != "cosine: nDCG@10"}
    better = [k for k, v in verdicts.items() if v == "better"]
    worse = [k for k, v in verdicts.items() if v == "worse"]
    assert said.startswith("Nothing is shown") == (not better)
    assert f"shown to be worse: {', '.join(worse) or 'nothing'};" in said
    assert all(n[k]["value"] > 0 for k in better)
    assert all(n[k]["value"] < 0 for k in worse)
    assert all(k in said for k in better)
    bad = [k for k in worse if any(x in k for x in ("whiten", "centred", "top"))]
    assert against == (f"recommended remedies hurt here: {', '.join(bad)}." if bad else "")


def sphere(said, against, n):
    even, if_even = n["evenness"]["value"], n["evenness of as many even vectors"]["value"]
    assert ("far from even" in said) == (even < if_even / 2)
    assert ("nearly even" in said) == (even > 0.8 * if_even)
    angle, cone = n["angle of plain mean and mean direction"], n["95 % cone of the mean direction"]["value"]
    assert ("Lengths matter:" in said) == clear(angle, cone, 1)
    m = n["length and cosine to the mean"]
    up, down = clear(m, 0, 1), clear(m, 0, -1)
    assert ("towards" in against, "away from" in against, against == "") == (up, down, not (up or down))


ORACLES = {
    f.__name__: f for f in (random, geometry, bias, runs, frequency, failures, windows, plausible, downstream, sphere)
}
