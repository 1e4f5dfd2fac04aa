"""All-pairs neighbours by cosine and whitening, against faiss and scikit-learn."""

from __future__ import annotations

import resource

import numpy as np

from benchmarks import Case, Cases
from gonio import Head
from gonio.core.row_table import RowTable
from gonio.remedies import Whiten
from gonio.similarity import centred_logit_correlation
from gonio.similarity.nearest import nearest_by_cosine


def cases(toy: bool) -> Cases:
    n, dim, k = (900, 24, 5) if toy else (50_000, 768, 10)
    X = np.random.default_rng(0).standard_normal((n, dim)).astype(np.float32)
    rows = RowTable(X)

    def flat() -> np.ndarray:
        """faiss's exact inner-product index, or where it is not installed scikit-learn's brute force."""
        U = X / np.linalg.norm(X, axis=1, keepdims=True)
        try:
            import faiss  # type: ignore[import-not-found]
        except ImportError:
            from sklearn.neighbors import NearestNeighbors

            return NearestNeighbors(n_neighbors=k, metric="cosine", algorithm="brute").fit(X).kneighbors()[1]
        index = faiss.IndexFlatIP(dim)
        index.add(U)
        return index.search(U, k + 1)[1][:, 1:]

    def peak() -> dict[str, float]:
        return {"peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6}

    yield Case(
        f"{k} nearest of {n:,} x {dim} by cosine, against a flat inner-product index",
        lambda: nearest_by_cosine(rows, k)[0],
        flat,
        lambda a, b: bool(np.mean(a == b) > 0.999),  # near-equals may swap in float32
        most=1.3,
        repeats=3,
        extra=peak,
    )
    Y = np.random.default_rng(1).standard_normal((n, dim if toy else 384)) + 1

    def pca() -> np.ndarray:
        from sklearn.decomposition import PCA

        return PCA(whiten=True).fit_transform(Y)

    yield Case(
        f"whiten {n:,} x {Y.shape[1]}, against scikit-learn's PCA(whiten=True)",
        lambda: Whiten().fit_transform(Y),
        pca,
        lambda a, b: bool(np.allclose(np.abs(a[:50]), np.abs(b[:50]) * np.sqrt(n / (n - 1)), atol=1e-6)),
        most=1.5,
    )
    head, F = Head(X, link="softmax"), np.random.default_rng(2).standard_normal((2 * dim, dim))
    several = np.arange(0, n, max(1, n // 50))

    def by_logits() -> np.ndarray:
        z = X.astype(np.float64) @ F.T
        z -= z.mean(axis=0)
        z -= z.mean(axis=1, keepdims=True)
        z /= np.linalg.norm(z, axis=1, keepdims=True)
        c = z[several] @ z.T
        c[np.arange(len(several)), several] = -2
        return np.argsort(-c, axis=1)[:, :k]

    yield Case(
        f"{k} nearest by centred-logit correlation of {len(several)} among {n:,} labels, against all logits formed",
        lambda: centred_logit_correlation(head, F).nearest(k, several).near,
        by_logits,
        lambda a, b: bool(np.mean(a == b) > 0.999),
        most=1.5,
        repeats=3,
    )
