"""8-bit integers, and weights of 2, 4 or 8 bits."""

from typing import Any

import ml_dtypes
import numpy as np

from microsoft.attention import key_mask
from microsoft.case import MAKERS, Array, Case, Random, case


def quantised(r: Random, *shape: int, dtype: Any) -> list[Array | None]:
    """Returns a tensor, its scale and its zero point."""
    return [r.bytes(*shape, dtype=dtype), r.scale(), r.bytes(dtype=dtype)]


def unary(name: str, attributes: dict[str, Any], rank: int = 4) -> None:
    """Registers an operator on one quantised tensor."""

    def maker(r: Random) -> Case:
        dtype = r.choice([np.uint8, np.int8])
        shape = (r.size(1, 2), r.size(2, 4), r.size(4, 6), r.size(4, 6))[:rank]
        weights = (1, 2, 3, 4)
        return Case([*quantised(r, *shape, dtype=dtype), r.scale(), r.bytes(dtype=dtype)], attributes, weights, steps=1)

    MAKERS[name] = maker


unary("QLinearSigmoid", {})
unary("QLinearLeakyRelu", {"alpha": 0.1})
unary("QLinearSoftmax", {"axis": -1, "opset": 13})
unary("QLinearAveragePool", {"kernel_shape": [2, 2], "strides": [2, 2]})
unary("QLinearGlobalAveragePool", {"channels_last": 0})


def binary(name: str) -> None:
    """Registers an operator on two quantised tensors."""

    def maker(r: Random) -> Case:
        dtype = r.choice([np.uint8, np.int8])
        shape = r.shape(1, 3)
        inputs = quantised(r, *shape, dtype=dtype) + quantised(r, *(shape if r.flag() else shape[-1:]), dtype=dtype)
        return Case([*inputs, r.scale() * 2, r.bytes(dtype=dtype)], weights=(1, 2, 4, 5, 6, 7), steps=1)

    MAKERS[name] = maker


binary("QLinearAdd")
binary("QLinearMul")


@case("QLinearWhere")
def qlinear_where(r: Random) -> Case:
    """Elements of one of two quantised tensors."""
    dtype = r.choice([np.uint8, np.int8])
    shape = r.shape(1, 3)
    condition = r.floats(*shape) > 0
    inputs = [
        condition,
        *quantised(r, *shape, dtype=dtype),
        *quantised(r, *shape, dtype=dtype),
        r.scale(),
        r.bytes(dtype=dtype),
    ]
    return Case(inputs, weights=(2, 3, 5, 6, 7, 8), steps=1)


@case("QLinearConcat")
def qlinear_concat(r: Random) -> Case:
    """Quantised tensors side by side."""
    dtype = r.choice([np.uint8, np.int8])
    inputs: list[Array | None] = [r.scale(), r.bytes(dtype=dtype)]
    for _ in range(r.size(1, 3)):
        inputs += quantised(r, 2, r.size(1, 4), 3, dtype=dtype)
    weights = tuple(i for i in range(len(inputs)) if i < 2 or (i - 2) % 3 != 0)
    return Case(inputs, {"axis": 1}, weights, steps=1)


@case("QLinearConv")
def qlinear_conv(r: Random) -> Case:
    """A quantised convolution."""
    dtype = np.uint8
    x, w = quantised(r, 1, 5, 6, 3, dtype=dtype), quantised(r, 4, 3, 3, 3, dtype=dtype)
    inputs = [*x, *w, r.scale() * 100, r.bytes(dtype=dtype)]
    return Case(inputs, {"channels_last": 1, "kernel_shape": [3, 3], "pads": [1] * 4}, tuple(range(1, 8)), steps=1)


@case("QGemm")
def qgemm(r: Random) -> Case:
    """A quantised product, with a quantised result or floats."""
    m, k, n = r.size(1, 6), r.size(1, 8), r.size(1, 6)
    trans_b = r.flag()
    inputs = [*quantised(r, m, k, dtype=np.uint8), *quantised(r, *((n, k) if trans_b else (k, n)), dtype=np.int8)]
    inputs[4] = r.scale(n) if r.flag() else r.scale()
    inputs[5] = np.zeros(np.shape(inputs[4]), np.int8)
    inputs.append(r.below(1000, n, dtype=np.int32) if r.flag() else None)
    if r.flag():
        inputs += [r.scale() * 100, r.bytes(dtype=np.uint8)]
    return Case(inputs, {"transB": int(trans_b)}, tuple(range(1, 9)), steps=1)


@case("QAttention")
def qattention(r: Random) -> Case:
    """Attention with a quantised projection."""
    b, s, heads, d, width = r.size(1, 3), r.size(1, 5), r.choice([1, 2]), 4, r.choice([4, 8])
    hidden = heads * d
    inputs: list[Array | None] = [
        r.bytes(b, s, width),
        r.bytes(width, 3 * hidden, dtype=np.int8),
        r.floats(3 * hidden),
        r.scale(),
        r.scale() if r.flag() else r.scale(3 * hidden),
        key_mask(r, b, s, s),
        r.bytes(),
    ]
    inputs.append(np.zeros(np.shape(inputs[4]), np.int8))
    attributes = {"num_heads": heads, "unidirectional": int(r.flag())}
    return Case(inputs, attributes, weights=(1, 2, 3, 4, 6, 7), tolerance=1e-4)


@case("DynamicQuantizeMatMul")
def dynamic_quantize_matmul(r: Random) -> Case:
    """A product of floats, which are quantised, and bytes."""
    m, k, n = r.size(1, 6), r.size(2, 8), r.size(1, 6)
    dtype = r.choice([np.uint8, np.int8])
    per_column = r.flag()
    inputs: list[Array | None] = [
        r.floats(r.size(1, 3), m, k),
        r.bytes(k, n, dtype=dtype),
        r.scale(n) if per_column else r.scale(),
    ]
    inputs.append(r.bytes(n, dtype=dtype) if per_column else r.bytes(dtype=dtype))
    inputs.append(r.floats(n) if r.flag() else None)
    return Case(inputs, weights=(1, 2, 3, 4), tolerance=1e-2)


@case("MatMulIntegerToFloat")
def matmul_integer_to_float(r: Random) -> Case:
    """A product of bytes as floats."""
    m, k, n = r.size(1, 6), r.size(1, 8), r.size(1, 6)
    dtype = r.choice([np.uint8, np.int8])
    per_column = r.flag()
    inputs: list[Array | None] = [
        r.bytes(m, k),
        r.bytes(k, n, dtype=dtype),
        r.scale(),
        r.scale(n) if per_column else r.scale(),
    ]
    inputs += [r.bytes(), r.bytes(n, dtype=dtype) if per_column else r.bytes(dtype=dtype)]
    inputs.append(r.floats(n) if r.flag() else None)
    return Case(inputs, weights=(1, 2, 3, 4, 5, 6), tolerance=1e-5)


@case("DynamicQuantizeLSTM")
def dynamic_quantize_lstm(r: Random) -> Case:
    """A recurrent layer with weights of bytes; data that ONNX Runtime rounds to bytes is not rounded here."""
    t, b, width, hidden = r.size(1, 5), r.size(1, 3), 8, 8
    directions = r.choice([1, 2])
    dtype = r.choice([np.uint8, np.int8])
    per_column = r.flag()

    def parameters() -> list[Array | None]:
        shape = (directions, 4 * hidden) if per_column else (directions,)
        zero = np.zeros(shape, dtype) if dtype == np.int8 else np.full(shape, 128, dtype)
        return [r.scale(*shape) / 10, zero]

    inputs: list[Array | None] = [
        r.floats(t, b, width),
        r.bytes(directions, width, 4 * hidden, dtype=dtype),
        r.bytes(directions, hidden, 4 * hidden, dtype=dtype),
        r.floats(directions, 8 * hidden) / 4,
        None,
        r.floats(directions, b, hidden) / 4 if r.flag() else None,
        None,
        None,
        *parameters(),
        *parameters(),
    ]
    attributes = {
        "hidden_size": hidden,
        "direction": "bidirectional" if directions == 2 else r.choice(["forward", "reverse"]),
    }
    return Case(inputs, attributes, (1, 2, 3, 8, 9, 10, 11), outputs=(True, True, True), tolerance=3e-2)


@case("QuantizeLinear")
def quantize_linear(r: Random) -> Case:
    """Floats as bytes."""
    dtype = r.choice([np.uint8, np.int8])
    return Case([r.floats(*r.shape()), r.scale(), r.bytes(dtype=dtype)], weights=(1, 2), steps=1)


@case("DequantizeLinear")
def dequantize_linear(r: Random) -> Case:
    """Bytes as floats."""
    return Case(quantised(r, *r.shape(), dtype=r.choice([np.uint8, np.int8])), weights=(1, 2))


@case("MatMulNBits")
def matmul_nbits(r: Random) -> Case:
    """A product with weights of few bits."""
    bits = r.choice([4, 4, 8, 2])
    block = r.choice([16, 32, 64])
    k, n = r.size(1, 3) * 32 + r.choice([0, 0, 16]), r.size(1, 3) * 8
    blocks = (k + block - 1) // block
    inputs: list[Array | None] = [
        r.floats(r.size(1, 2), r.size(1, 4), k),
        r.bytes(n, blocks, block * bits // 8),
        r.scale(n, blocks),
    ]
    inputs.append(r.bytes(n, (blocks * bits + 7) // 8) if r.flag() else None)
    if r.flag():
        inputs += [None, r.floats(n)]
    return Case(inputs, {"K": k, "N": n, "bits": bits, "block_size": block}, (1, 2, 3, 5), tolerance=1e-3)


@case("GatherBlockQuantized")
def gather_block_quantized(r: Random) -> Case:
    """Rows of a table of few bits."""
    bits, block, features, rows = r.choice([4, 8]), r.choice([16, 32]), 64, 10
    per_byte = 8 // bits
    blocks = features // block
    inputs: list[Array | None] = [
        r.bytes(rows, features // per_byte),
        r.below(rows, 2, r.size(1, 3)),
        r.scale(rows, blocks),
    ]
    if r.flag():
        inputs.append(r.bytes(rows, (blocks + per_byte - 1) // per_byte))
    return Case(inputs, {"bits": bits, "block_size": block, "gather_axis": 0, "quantize_axis": 1}, (0, 2, 3))


@case("GatherBlockQuantized.narrow")
def gather_narrow_blocks(r: Random) -> Case:
    """Rows of a table of an element type of 4 bits, whose zero points are 0 if they are not given."""
    dtype, low = r.choice([(ml_dtypes.int4, -8), (ml_dtypes.uint4, 0)])
    block, features, rows = r.choice([16, 32]), 64, 10

    def numbers(*shape: int) -> Array:
        return (r.below(16, *shape) + low).astype(dtype)

    inputs: list[Array | None] = [numbers(rows, features), r.below(rows, 2, r.size(1, 3)), r.scale(rows, features // block)]
    if r.flag():
        inputs.append(numbers(rows, features // block))
    return Case(inputs, {"block_size": block, "gather_axis": 0, "quantize_axis": 1}, (0, 2, 3))
