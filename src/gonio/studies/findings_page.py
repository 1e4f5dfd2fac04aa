"""docs/findings.md and its pictures from the record docs/findings.json: no result on the page is typed by hand.

python -m gonio.studies.findings_page docs
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from gonio.core.atomic_write import whole_text
from gonio.studies.downstream_summary import summary
from gonio.studies.interval_chart import ChartRow, interval_chart
from gonio.studies.study import Measured

Record = dict[str, list[dict[str, Any]]]

# study -> (heading, what it means in words without numbers)
TOLD = {
    "random": (
        "Different from random",
        "Each statistic is a function of the covariance of the centred logits, so no equivalent form of the model "
        "has another. The random heads have the same spectrum of that covariance and the same size of every label, and "
        "are drawn about evenly from all such heads. A second kind keeps what goes with frequency too: the mean row at "
        "each frequency, a curve that may bend at every tenth, and the size that frequency gives a row; what is left "
        "once both are taken out is drawn at random with its own spectrum and sizes, so what still differs is more "
        "than such a mean row and such sizes. On made heads without structure and with uneven spectra (120 x 6, "
        "300 x 20, 400 x 32; 24 of each) single statistics told 0 to 17 % apart from the first kind at a nominal 5 %. "
        "wordfreq counts words only; for heads whose labels are no words (readings, phonemes, characters, "
        "atoms, pitches) no list is at hand, and the model's own mean probability over the states stands for it. "
        "wordllama's table predicts nothing, so its rows without their mean are taken as stored, and so are "
        "those of MiniLM's. Beside this, labels are dealt within tenths of frequency. "
        "Counts of feasible rankings of a few labels are left out: general position fixes them, so they are the "
        "same for trained and random rows. The parts of the stored cosines' mean square that are offset and "
        "covariance are conventions. More labels show more, as g2pM does twice: what is not shown to differ at one "
        "number of labels may be at another.",
    ),
    "geometry": (
        "Why cosine matrices correlate",
        "That the supremum is 1 is proven: where one label can win in both heads, forms exist in which it lies "
        "opposite all others in both. How low it goes was found by a descent over both heads' forms at once. "
        "SmolLM2's copy has every matrix of the model rounded, row by row, to 15 levels, and its own states. Lee "
        "et al.'s numbers for pairs of models are not at hand to compare with.",
    ),
    "bias": (
        "Where a common bias comes from",
        "Eight causal transformers of two blocks, trained here on one text; all were read at the same held-out places.",
    ),
    "runs": (
        "Does the ambiguity arise in deep models?",
        "One network with two hidden layers, six ways of training, three seeds each. Only runs of two seeds that "
        "predict equally well are compared, within one way and across ways. The strength of the weight decay, the "
        "steps on MovieLens and what counts as equally well were set after a first look, in which decay changed "
        "nothing, MovieLens was overfitted, and hardly any pair on digits was equal.",
    ),
    "frequency": (
        "Frequency and norms",
        "Norms and cosines are read off the stored table, the logit spread and correlation are what no form moves. "
        "Zhou et al. print, for contextual vectors of BERT, a correlation of norm and log frequency of 0.678 "
        "(Pearson) and a slope of the cosine of -0.0135 a doubling of frequency, on another scale than the "
        "standardised slopes here. Pairs that people judged are cut in tenths by frequency; frequencies are dealt anew "
        "among the labels to tell what a tenth gives by chance, each tenth by itself.",
    ),
    "failures": (
        "The failure scenarios at scale",
        "A case fails where a near-copy of other meaning is nearer than a paraphrase that people graded 4 or 5; a "
        "coin fails in half of the cases. Roles in abstracts have a paraphrase by rule (the effect on B of A, "
        "beside the effect of B on A), and strength a weaker hypothesis that the sentence supports. Of 30 of each "
        "kind, drawn at random and read, these made sense: negation 29, numbers 27, roles 30 (most of them absurd, as "
        "a piano that plays a man), strength 28, roles in abstracts 26 (four paraphrases are hard to read), strength "
        "in abstracts 28.",
    ),
    "windows": (
        "word2vec as a sigmoid classifier",
        "A window is the set of words around a place; possible means that some vector answers yes to these and to "
        "no other word of the vocabulary.",
    ),
    "plausible": (
        "Possible, plausible, seen",
        "Plausible is within an ellipsoid fitted to half of the states and sized by a quarter; its coverage is "
        "counted on the rest. The hull of the states leaves out most held-out states, so it is no outer set.",
    ),
    "downstream": (
        "Retrieval, neighbours, clusters downstream",
        "The whole tables, with MovieLens, STS-B and clusters, are in [what_helps.md](what_helps.md). MiniLM reads "
        "there the first 256 tokens of an abstract, here 512, so the numbers differ a little.",
    ),
    "sphere": (
        "The sphere's view",
        "A concentration belongs to a law that spreads evenly around its mean; evenness says whether the vectors do.",
    ),
}
# study -> (title, span, mark, name of a number as it begins -> colour)
DRAWN: dict[str, tuple[str, tuple[float, float], float | None, dict[str, int]]] = {
    "random": ("Trained (blue), random of one spectrum and sizes (red), of one frequency too (violet)",
               (-0.5, 2), None,
               {"spread": 0, "nearest": 0, "hubs": 0, "own way": 0, "can tie": 0}),
    "geometry": ("Correlation of two models' similarities", (-1, 1), 0,
                 {"stored cosines": 0, "lowest found": 1, "supremum": 1, "logits": 2}),
    "bias": ("Eight small language models, two by two", (0, 1), None, {"all": 0, "both": 1, "one": 3, "only": 2}),
    "runs": ("Agreement of runs that predict equally well", (-0.2, 1), None, {"equal": 0}),
    "frequency": ("Norms and judged pairs against frequency", (-1, 1), 0, {"": 0}),
    "failures": ("Share of cases in which the wrong one is nearer", (0, 1), 0.5,
                 {"negation": 0, "numbers": 1, "roles": 2, "strength": 3, "function words": 0}),
    "windows": ("Share of windows that can be answered", (0, 1), None, {"": 0}),
    "plausible": ("Possible, plausible, seen", (0, 1), None, {"winners": 0, "pairs": 1, "rankings": 2, "held-out": 3}),
    "downstream": ("nDCG@10 beside the cosine", (-0.2, 0.1), 0, {"": 0}),
    "sphere": ("On the sphere", (-1, 1), 0, {"mean resultant": 0, "evenness": 1, "length": 2}),
}  # fmt: skip


def chart(study: str, results: list[dict[str, Any]]) -> str:
    """The picture of a study."""
    title, span, mark, kinds = DRAWN[study]
    groups = []
    for r in results:
        rows = []
        for m in r["measured"]:
            colour = next((c for k, c in kinds.items() if m["name"].startswith(k)), None)
            if colour is None or not _drawn(study, m["name"]):
                continue
            if "random" in m["name"] and study in ("random", "windows"):
                colour = 2 if "frequency" in m["name"] else 1
            rows.append(ChartRow(m["name"], m["value"], m["low"], m["high"], colour))
        groups.append((r["about"], rows))
    return interval_chart(title, groups, span, mark)


def _drawn(study: str, name: str) -> bool:
    left_out = {
        "random": ("(spectrum)", "nearest of", "nearest spelled", "dealt", "missed"),
        "downstream": ("cosine: nDCG@10",),
        "runs": ("seeds:",),
        "frequency": ("with people, tenth",),
    }
    return not any(x in name for x in left_out.get(study, ()))


def page(record: Record, helps: str) -> str:
    """The page of a record, as Markdown, the tables of what_helps.md summed up; what is against the sources first."""
    out = [
        "# Findings: the papers' open questions on real models",
        "",
        "Made from [findings.json](findings.json) by `python -m gonio.studies.findings_page docs`; a test compares. "
        "Eight of the ten run on models or texts of your own: `gonio study --list`. Numbers in brackets are 95 % "
        "intervals unless `how` says otherwise; seeds are fixed. The heads lie inside published packages, and so do "
        "STS-B, WordSim-353, SimLex-999, wordfreq's list, MovieLens and a small news corpus; Cranfield is read where "
        "`GONIO_DATA` names it.",
        "",
        "## Against the sources",
        "",
    ]
    out += [f"- **{r['study']}**, {r['about']}: {r['against']}" for rs in record.values() for r in rs if r["against"]]
    for study, results in record.items():
        heading, words = TOLD[study]
        out += ["", f"## {heading}", "", f"*{results[0]['question']}* {words}", ""]
        out += [f"![{DRAWN[study][0]}](pictures/findings-{study}.svg)", ""]
        for r in results:
            out += [f"**{r['about']}.** {r['verdict']}", ""]
        if study == "downstream":
            out += summary(helps)
        limits = dict.fromkeys(x for r in results for x in re.split(r"(?<=\.) ", r["limits"].strip()) if x)
        out += [f"Limits: {' '.join(limits)}", ""]
        out += [f"`gonio study {study}` · the numbers:", ""]
        for r in results:
            out += [f"<details><summary>{r['about']}</summary>", "", "| number | value | how |", "|---|---|---|"]
            out += [f"| {_cell(m['name'])} | {_words(m)} | {_cell(m['how'])} |" for m in r["measured"]]
            out += ["", "</details>", ""]
    return "\n".join(out).rstrip() + "\n"


def _words(m: dict[str, Any]) -> str:
    if m["value"] is None:
        return "undefined"
    return Measured(m["name"], m["value"], m["low"], m["high"]).words()


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def write(docs: Path) -> None:
    """The page and its pictures, from the record beside them."""
    record = json.loads((docs / "findings.json").read_text(encoding="utf-8"))
    helps = (docs / "what_helps.md").read_text(encoding="utf-8")
    for study, results in record.items():
        whole_text(docs / "pictures" / f"findings-{study}.svg", chart(study, results), "study")
    whole_text(docs / "findings.md", page(record, helps), "study")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
