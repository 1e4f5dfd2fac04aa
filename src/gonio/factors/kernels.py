"""The compiled products of a sparse table with vectors: rows in order, and no copy of it whatever its type."""

from __future__ import annotations

from gonio.core.compiled import njit


@njit(nogil=True, cache=True)
def gram_vector(indptr, indices, data, first, last, v, out):
    """out += X' (X v) over the rows first..last, in one pass: a row is read while it is still in the cache."""
    for u in range(first, last):
        a, b = indptr[u], indptr[u + 1]
        y = 0.0
        for t in range(a, b):
            y += data[t] * v[indices[t]]
        if y != 0.0:
            for t in range(a, b):
                out[indices[t]] += data[t] * y


@njit(nogil=True, cache=True)
def times_block(indptr, indices, data, first, last, V, out):
    """out_u = sum_i x_ui V_i for the rows first..last."""
    for u in range(first, last):
        for c in range(V.shape[1]):
            out[u, c] = 0.0
        for t in range(indptr[u], indptr[u + 1]):
            x, i = data[t], indices[t]
            for c in range(V.shape[1]):
                out[u, c] += x * V[i, c]


@njit(nogil=True, cache=True)
def transposed_block(indptr, indices, data, first, last, U, out):
    """out_i += sum_u x_ui U_u over the rows first..last."""
    for u in range(first, last):
        for t in range(indptr[u], indptr[u + 1]):
            x, i = data[t], indices[t]
            for c in range(U.shape[1]):
                out[i, c] += x * U[u, c]


@njit(nogil=True, cache=True)
def column_sums(indptr, indices, data, first, last, sums, squares, counts):
    """Sum, sum of squares and number of entries of each column over the rows first..last."""
    for t in range(indptr[first], indptr[last]):
        x, i = data[t], indices[t]
        if x != 0:
            sums[i] += x
            squares[i] += x * x
            counts[i] += 1
