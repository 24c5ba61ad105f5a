"""Rows of a tensor, each of which is read as a whole: normalisations and reductions."""

import triton
import triton.language as tl
from generated import behind


@triton.jit
def collage_kernel(
    others,
    result,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    IS_REDUCED: tl.constexpr,
    BLOCK_ROWS: tl.constexpr,
    BLOCK_COLUMNS: tl.constexpr,
):
    """result [ROWS, COLUMNS], or [ROWS, 1] where it is reduced. A program computes BLOCK_ROWS rows."""
    row = tl.program_id(0) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)[:, None]
    column = tl.arange(0, BLOCK_COLUMNS)[None, :]
    row_there = row < ROWS
    column_there = column < COLUMNS
    value = behind(row, column, row_there, column_there, others)
    if IS_REDUCED:
        tl.store(result + row, value.to(result.dtype.element_ty), mask=row_there)
    else:
        there = row_there & column_there
        tl.store(result + row * COLUMNS + column, value.to(result.dtype.element_ty), mask=there)
