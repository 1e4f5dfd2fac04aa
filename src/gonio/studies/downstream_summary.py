"""Retrieval, judged pairs and clusters in one table: what the runs told in docs/what_helps.md found beside the cosine.

The tables are read from that page. What it tells in sentences is named here with its words, and a test finds these in
it.
"""

from __future__ import annotations

import re

# heading of a column -> (what a table of the page stands under, how it was had)
TABLES = {
    "Cranfield, retrieval": ("## Cranfield", "nDCG@10 over 225 questions under MiniLM; `gonio check`"),
    "films ask, product": (
        "**penalty on the product; films ask**",
        "nDCG@10 of the held-out film, MovieLens-100k, penalty on the product; `gonio factors movielens`",
    ),
    "films ask, factors": (
        "**penalty on each factor; films ask**",
        "the same with the penalty on each factor",
    ),
    "STS-B, clusters": (
        "**STS-B, 1,500 first",
        "B-cubed F of k-means against 6 sources; `gonio.papers.cluster_agreement`",
    ),
    "films, clusters, product": (
        "**MovieLens, 271 films of one genre (drama, comedy, horror), penalty on the product**",
        "B-cubed F against 3 genres, penalty on the product",
    ),
    "films, clusters, factors": (
        "**MovieLens, 271 films of one genre (drama, comedy, horror), penalty on each factor**",
        "the same with the penalty on each factor",
    ),
}  # fmt: skip
PAIRS = "STS-B, judged pairs"
PAIRS_HOW = "Spearman's correlation with people's judgements of 1,500 pairs under MiniLM; `gonio check --judged`"
STS_B = {  # as the page says it
    "dot product": "-0.198 worse",
    "l2": "-0.085 worse",
    "centred": "+0.001 not shown",
    "without top 1": "-0.003 worse",
    "without top 4": "-0.015 worse",
    "without top 10": "-0.027 worse",
    "whitened, half": "-0.021 worse",
    "whitened, all": "-0.029 worse",
    "CSLS": "-0.020 worse",
    "local scaling": "-0.008 worse",
}
NEIGHBOURS = {  # what -> share of 10 neighbours kept, as the page says it
    "Cranfield, int8 in place of 32 bits": "0.930 (0.920 to 0.940)",
    "Cranfield, half of the directions": "0.761",
    "STS-B, from wordllama to MiniLM": "0.416 (0.400 to 0.432)",
    "words of both tables, from wordllama to MiniLM": "0.401 (0.387 to 0.414)",
}


def summary(helps: str) -> list[str]:
    """The lines of the summary, from the text of what_helps.md."""
    found = {name: _beside_cosine(helps, under) for name, (under, _) in TABLES.items()}
    columns = {"Cranfield, retrieval": found.pop("Cranfield, retrieval"), PAIRS: STS_B, **found}
    hows = {PAIRS: PAIRS_HOW} | {k: how for k, (_, how) in TABLES.items()}
    out = ["Every way beside the cosine, as the runs of [what_helps.md](what_helps.md) found it:", ""]
    out += [f"| way | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    out += [f"| {way} | {' | '.join(c.get(way, '') for c in columns.values())} |" for way in STS_B]
    out += ["", f"{'; '.join(f'{k}: {hows[k]}' for k in columns)}."]
    out += [
        "An empty cell was not tried, or is a score without the space that k-means needs. "
        "Half and all are of the directions that the vectors have.",
        "",
    ]
    out += ["| neighbours | kept of 10 |", "|---|---|", *(f"| {k} | {v} |" for k, v in NEIGHBOURS.items()), ""]
    return out


def _beside_cosine(helps: str, under: str) -> dict[str, str]:
    """The difference and the verdict of each way, from the last two columns of the first table under some words."""
    rest = helps[helps.index(under) :].splitlines()
    start = next(i for i, line in enumerate(rest) if line.startswith("|---"))
    out: dict[str, str] = {}
    for line in rest[start + 1 :]:
        if not line.startswith("|"):
            break
        cells = [c.strip() for c in line.strip("|").split("|")]
        if cells[-1]:
            out[_way(cells[0])] = f"{cells[-2].split(' ')[0]} {cells[-1]}"
    wide = [w for w in out if w.startswith("whitened")]
    called: dict[str, str] = dict(zip(wide, ("whitened, half", "whitened, all"), strict=True))
    return {called.get(k, k): v for k, v in out.items()}


def _way(name: str) -> str:
    return re.sub(r"^dot$", "dot product", name)
