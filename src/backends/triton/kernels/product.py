"""A batch of products of matrices, and what follows each sum."""

import triton
import triton.language as tl
from generated import behind


@triton.jit
def read(at, first_there, second_there, ALL_FIRST: tl.constexpr, ALL_SECOND: tl.constexpr):
    """Loads a tile of a factor; what is not there is 0. Masks that hold everywhere are left out."""
    if ALL_FIRST and ALL_SECOND:
        tile = tl.load(at)
    elif ALL_FIRST:
        tile = tl.load(at, mask=second_there, other=0)
    elif ALL_SECOND:
        tile = tl.load(at, mask=first_there, other=0)
    else:
        tile = tl.load(at, mask=first_there & second_there, other=0)
    return tile


@triton.jit
def collage_kernel(
    a,
    b,
    others,
    result,
    M: tl.constexpr,
    N: tl.constexpr,
    K: tl.constexpr,
    BATCH_A: tl.constexpr,
    ROW_A: tl.constexpr,
    DEPTH_A: tl.constexpr,
    BATCH_B: tl.constexpr,
    DEPTH_B: tl.constexpr,
    COLUMN_B: tl.constexpr,
    SUM: tl.constexpr,
    PRECISION: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr,
):
    """result [batch, M, N] = behind(a [batch, M, K] x b [batch, K, N]).

    Names as ROW_A are distances in elements from one to the next. A program computes a tile of BLOCK_M rows and BLOCK_N
    columns. GROUP rows of tiles are computed together, column by column, so that their factors stay in the cache.
    """
    tiles_m: tl.constexpr = (M + BLOCK_M - 1) // BLOCK_M
    tiles_n: tl.constexpr = (N + BLOCK_N - 1) // BLOCK_N
    tile = tl.program_id(0)
    batch = tl.program_id(1)
    first = tile // (GROUP * tiles_n) * GROUP
    within = tile % (GROUP * tiles_n)
    height = tl.minimum(tiles_m - first, GROUP)
    row = (first + within % height) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    column = within // height * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    row_there = row < M
    column_there = column < N
    across = tl.arange(0, BLOCK_K)[None, :]
    down = tl.arange(0, BLOCK_K)[:, None]
    a_at = a + batch * BATCH_A + row * ROW_A + across * DEPTH_A
    b_at = b + batch * BATCH_B + down * DEPTH_B + column * COLUMN_B
    total = tl.zeros((BLOCK_M, BLOCK_N), SUM)
    for k in range(0, K, BLOCK_K):
        left = read(a_at, row_there, k + across < K, M % BLOCK_M == 0, K % BLOCK_K == 0)
        right = read(b_at, k + down < K, column_there, K % BLOCK_K == 0, N % BLOCK_N == 0)
        total = tl.dot(left, right, total, input_precision=PRECISION, out_dtype=SUM)
        a_at += BLOCK_K * DEPTH_A
        b_at += BLOCK_K * DEPTH_B
    whole_row = batch * M + row
    value = behind(total, whole_row, column, row_there, column_there, others)
    tl.store(result + whole_row * N + column, value.to(result.dtype.element_ty), mask=row_there & column_there)
