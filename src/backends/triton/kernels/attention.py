"""Attention, a block of keys at a time (FlashAttention: Dao et al. 2022, algorithm 1)."""

import triton
import triton.language as tl
from generated import behind


@triton.jit
def read(base, row, column, OF_ROW: tl.constexpr, OF_COLUMN: tl.constexpr, ROWS, COLUMNS):
    """Loads a tile of a matrix [ROWS, COLUMNS]; what is not there is 0."""
    return tl.load(base + row * OF_ROW + column * OF_COLUMN, mask=(row < ROWS) & (column < COLUMNS), other=0)


@triton.jit
def collage_kernel(
    q,
    k,
    v,
    others,
    result,
    M: tl.constexpr,
    N: tl.constexpr,
    DEPTH: tl.constexpr,
    WIDTH: tl.constexpr,
    BATCH_Q: tl.constexpr,
    BATCH_K: tl.constexpr,
    COLUMN_K: tl.constexpr,
    DEPTH_K: tl.constexpr,
    BATCH_V: tl.constexpr,
    ROW_V: tl.constexpr,
    COLUMN_V: tl.constexpr,
    PRECISION: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_DEPTH: tl.constexpr,
    BLOCK_WIDTH: tl.constexpr,
):
    """result [batch, M, WIDTH] = softmax(behind(q [batch, M, DEPTH] x k [batch, DEPTH, N])) x v [batch, N, WIDTH].

    Names as COLUMN_K are distances in elements from one to the next. A program computes BLOCK_M rows. Scores of a row
    are never there as a whole: the largest one so far is subtracted, and sums are scaled when there is a larger one.
    """
    batch = tl.program_id(1)
    row = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    row_there = row < M
    down = tl.arange(0, BLOCK_DEPTH)[:, None]
    width = tl.arange(0, BLOCK_WIDTH)[None, :]
    queries = read(q + batch * BATCH_Q, row, tl.arange(0, BLOCK_DEPTH)[None, :], DEPTH, 1, M, DEPTH)
    largest = tl.full((BLOCK_M, 1), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK_M, 1), tl.float32)
    sums = tl.zeros((BLOCK_M, BLOCK_WIDTH), tl.float32)
    for first in range(0, N, BLOCK_N):
        column = first + tl.arange(0, BLOCK_N)[None, :]
        column_there = column < N
        keys = read(k + batch * BATCH_K, down, column, DEPTH_K, COLUMN_K, DEPTH, N)
        values = read(v + batch * BATCH_V, first + tl.arange(0, BLOCK_N)[:, None], width, ROW_V, COLUMN_V, N, WIDTH)
        products = tl.dot(queries, keys, input_precision=PRECISION)
        scores = behind(products, batch * M + row, column, row_there, column_there, others)
        scores = tl.where(column_there, scores, float("-inf"))
        larger = tl.maximum(largest, tl.max(scores, axis=1, keep_dims=True))
        # A row without any score so far has no largest one to subtract.
        base = tl.where(larger == float("-inf"), 0.0, larger)
        weights = tl.exp(scores - base)
        shrink = tl.exp(largest - base)
        total = total * shrink + tl.sum(weights, axis=1, keep_dims=True)
        sums = tl.dot(weights.to(values.dtype), values, sums * shrink, input_precision=PRECISION)
        largest = larger
    at = result + (batch * M + row) * WIDTH + width
    tl.store(at, (sums / total).to(result.dtype.element_ty), mask=row_there & (width < WIDTH))
