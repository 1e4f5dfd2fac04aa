"""Products of whole numbers of one byte: exact, and several times as fast as float32 where the processor has them.

    out_ij = sum_t rows_it columns_jt,      both from -127 to 127, sums of 32 bits: exact up to a width of 65,536

The instruction VPDPBUSD multiplies 64 unsigned bytes by 64 signed ones and adds each four products to a sum. So the
columns are kept as `packed`: 16 columns side by side, four numbers of each at a time, all raised by 128 to be unsigned;
what that adds, 128 times the sum of a row, each sum begins without. A tile of 8 rows by 48 columns keeps its sums in
registers. Where there is no such instruction (or numba compiles nothing) numpy gives the same numbers, slowly: callers
ask `are_fast()` first.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numba
import numpy as np
from llvmlite import binding, ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from gonio.core.compiled import njit

if TYPE_CHECKING:
    from jaxtyping import Int8, Int32, UInt8

LANES, FOUR = 16, 4  # 32-bit sums of one register, and bytes of one sum
TILE_ROWS, TILE_BLOCKS = 8, 3  # of one tile: 24 of the 32 registers hold its sums
TILE = TILE_BLOCKS * LANES  # columns of one tile
RAISED = 128
WIDEST = 65_536  # 127 * 255 * WIDEST is below 2^31
I32, I64 = ir.IntType(32), ir.IntType(64)
SUMS = ir.VectorType(I32, LANES)


def are_fast() -> bool:
    """Whether products of bytes are made sooner than products of floats."""
    return _have_their_instruction()


@cache
def _have_their_instruction() -> bool:
    """Whether this processor multiplies bytes, and compiled code may tell it to."""
    return not numba.config.DISABLE_JIT and bool(binding.get_host_cpu_features().get("avx512vnni", False))  # type: ignore[attr-defined]


def packed(columns: Int8[np.ndarray, "columns width"]) -> UInt8[np.ndarray, "blocks fours bytes"]:
    """Columns as `products` takes them: blocks of 16, four numbers of each at a time, and blocks to spare at the end.

    The width is a multiple of four. What is to spare is arbitrary and never looked at.
    """
    n, width = columns.shape
    blocks = -(-n // LANES)
    out = np.zeros((blocks + TILE_BLOCKS, width // FOUR, LANES, FOUR), np.uint8)
    for k in range(0, blocks, 64):  # a piece at a time: what is read stays in the cache until it is written
        some = columns[LANES * k : LANES * (k + 64)]
        raised = np.full((-(-len(some) // LANES) * LANES, width), RAISED, np.uint8)
        np.add(some, RAISED, out=raised[: len(some)], casting="unsafe", dtype=np.int16)
        out[k : k + len(raised) // LANES] = raised.reshape(-1, LANES, width // FOUR, FOUR).transpose(0, 2, 1, 3)
    return out.reshape(len(out), width // FOUR, LANES * FOUR)


def products(
    rows: Int8[np.ndarray, "rows width"],
    columns: UInt8[np.ndarray, "blocks fours bytes"],
    first: int,
    last: int,
    depth: int,
    out: Int32[np.ndarray, " room"],
) -> Int32[np.ndarray, "rows columns_or_more"]:
    """The products of rows with the columns first to last - 1, over their leading `depth` numbers (a multiple of four).

    `first` is a multiple of 16. The result lies in `out`, of at least room(rows, columns) entries, and may have more
    columns than were asked for; what stands in those is arbitrary.
    """
    assert first % LANES == 0 == depth % FOUR, "columns come in blocks of 16, numbers in fours"
    m, blocks = len(rows), -(-(last - first) // LANES)
    tall, wide = -(-m // TILE_ROWS) * TILE_ROWS, -(-blocks // TILE_BLOCKS) * TILE_BLOCKS
    if not _have_their_instruction():
        return _by_numpy(rows, columns, first, last, depth)
    if tall != m:
        rows = np.vstack([rows, np.zeros((tall - m, rows.shape[1]), np.int8)])
    S = out[: tall * wide * LANES].reshape(tall, wide * LANES)
    _products(rows, columns, first // LANES, blocks, depth // FOUR, S)
    return S[:m]


def room(rows: int, columns: int) -> int:
    """How many entries `products` needs to write to."""
    return (rows + TILE_ROWS) * (columns + TILE)


def _by_numpy(rows: np.ndarray, columns: np.ndarray, first: int, last: int, depth: int) -> np.ndarray:
    """The same numbers in float64, where they are exact too."""
    some = columns[first // LANES : -(-last // LANES), : depth // FOUR]
    C = some.reshape(len(some), -1, LANES, FOUR).transpose(0, 2, 1, 3).reshape(len(some) * LANES, depth)
    S = rows[:, :depth].astype(np.float64) @ (C[: last - first].astype(np.float64) - RAISED).T
    return S.astype(np.int32)


@intrinsic
def _tile(_: Any, rows: Any, columns: Any, out: Any, begin: Any, i: Any, j: Any, k: Any, fours: Any):
    """out[i : i + 8, 16 k : 16 k + 48] = begin_i + rows[i : i + 8] @ (blocks j, j + 1, j + 2 of the columns)."""
    size = types.intp
    signature = types.void(rows, columns, out, begin, size, size, size, size)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        arrays = [
            context.make_array(t)(context, builder, a) for t, a in zip(signature.args[:4], arguments, strict=False)
        ]
        i, j, k, fours = arguments[4:]
        lines, blocks, sums, begins = (a.data for a in arrays)
        lines = builder.bitcast(lines, I32.as_pointer())
        blocks = builder.bitcast(blocks, SUMS.as_pointer())
        width = builder.lshr(cgutils.unpack_tuple(builder, arrays[0].shape)[1], I64(2))
        columns_out = cgutils.unpack_tuple(builder, arrays[2].shape)[1]
        line_of = [builder.add(i, I64(r)) for r in range(TILE_ROWS)]
        line = [builder.mul(x, width) for x in line_of]
        block = [builder.mul(builder.add(j, I64(q)), width) for q in range(TILE_BLOCKS)]

        def spread(x: Any) -> Any:
            """A number in all lanes."""
            first = builder.insert_element(ir.Constant(SUMS, ir.Undefined), x, I32(0))
            return builder.shuffle_vector(first, first, ir.Constant(SUMS, [0] * LANES))

        def read(pointer: Any, at: Any, align: int) -> Any:
            value = builder.load(builder.gep(pointer, [at]))
            value.align = align
            return value

        start = [spread(read(begins, x, 4)) for x in line_of]
        before, loop, after = builder.block, *(builder.append_basic_block(x) for x in ("fours", "written"))
        builder.branch(loop)
        builder.position_at_end(loop)
        t = builder.phi(I64)
        held = [builder.phi(SUMS) for _ in range(TILE_ROWS * TILE_BLOCKS)]
        some = [read(blocks, builder.add(x, t), 4) for x in block]
        # Declared as of old, with 32-bit lanes; where LLVM has come to declare it by bytes, it reads this as that.
        kind = ir.FunctionType(SUMS, [SUMS] * 3)
        multiply = cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.avx512.vpdpbusd.512")
        more = []
        for r in range(TILE_ROWS):
            one = spread(read(lines, builder.add(line[r], t), 1))
            more += [builder.call(multiply, [held[r * TILE_BLOCKS + q], some[q], one]) for q in range(TILE_BLOCKS)]
        following = builder.add(t, I64(1))
        for phi, first, then in [(t, I64(0), following)] + [
            (held[p], start[p // TILE_BLOCKS], more[p]) for p in range(len(held))
        ]:
            phi.add_incoming(first, before)
            phi.add_incoming(then, loop)
        builder.cbranch(builder.icmp_signed("<", following, fours), loop, after)
        builder.position_at_end(after)
        for p, value in enumerate(more):
            at = builder.add(
                builder.mul(line_of[p // TILE_BLOCKS], columns_out),
                builder.mul(builder.add(k, I64(p % TILE_BLOCKS)), I64(LANES)),
            )
            builder.store(value, builder.bitcast(builder.gep(sums, [at]), SUMS.as_pointer())).align = 4
        return context.get_dummy_value()

    return signature, generate


@njit(nogil=True, cache=True)
def _products(rows, columns, first, blocks, fours, out):
    """All tiles of the rows with so many blocks of columns from `first` on."""
    begin = np.empty(len(rows), np.int32)
    for i in range(len(rows)):
        total = np.int32(0)
        for t in range(4 * fours):
            total += rows[i, t]
        begin[i] = -128 * total
    for j in range(0, blocks, 3):
        for i in range(0, len(rows), 8):
            _tile(rows, columns, out, begin, i, first + j, j, fours)  # type: ignore[call-arg]  numba gives the context
