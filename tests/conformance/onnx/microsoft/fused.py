"""Activations, products, convolutions and norms."""

import math
from typing import Any

import numpy as np

from microsoft.case import Array, Case, Random, case


@case("Gelu")
def gelu(r: Random) -> Case:
    """GELU."""
    return Case([r.floats(*r.shape())])


@case("BiasGelu")
def bias_gelu(r: Random) -> Case:
    """GELU of a sum."""
    shape = r.shape()
    return Case([r.floats(*shape), r.floats(shape[-1])])


@case("FastGelu")
def fast_gelu(r: Random) -> Case:
    """GELU by a hyperbolic tangent."""
    shape = r.shape()
    return Case([r.floats(*shape)] + ([r.floats(shape[-1])] if r.flag() else []), tolerance=1e-4)


@case("QuickGelu")
def quick_gelu(r: Random) -> Case:
    """A sigmoid's GELU."""
    return Case([r.floats(*r.shape())], {"alpha": float(r.choice([1.0, 1.702, 0.5]))} if r.flag() else {})


def gelu_of(x: Array, by_tanh: bool = False) -> Array:
    """GELU, by the error function or a hyperbolic tangent."""
    if by_tanh:
        return x * 0.5 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)).astype(x.dtype))


@case("BiasAdd")
def bias_add(r: Random) -> Case:
    """The sum of a tensor, a bias and another tensor."""
    b, s, c = r.size(1, 3), r.size(1, 4), r.size(1, 5)
    x, bias, skip = r.floats(b, s, c), r.floats(c), r.floats(b, s, c)
    return Case([x, bias, skip], results=[x + bias + skip])


@case("BiasSplitGelu")
def bias_split_gelu(r: Random) -> Case:
    """Half of the features times GELU of the others."""
    b, s, c = r.size(1, 3), r.size(1, 4), r.size(1, 5)
    x, bias = r.floats(b, s, 2 * c), r.floats(2 * c)
    left, right = np.split(x + bias, 2, axis=-1)
    return Case([x, bias], results=[left * gelu_of(right)])


@case("GemmFastGelu")
def gemm_fast_gelu(r: Random) -> Case:
    """GELU of a product."""
    m, k, n = r.size(1, 5), r.size(1, 5), r.size(1, 5)
    x, w, bias = r.floats(m, k), r.floats(k, n), r.floats(n)
    return Case([x, w, bias], weights=(1, 2), results=[gelu_of(x @ w + bias, by_tanh=True)])


@case("BiasSoftmax")
def bias_softmax(r: Random) -> Case:
    """softmax of a sum, whose bias lacks dimensions in the middle or in front."""
    a, b, c, d = (r.size(1, 4) for _ in range(4))
    inner = r.flag()
    x, bias = r.floats(a, b, c, d), r.floats(*((a, 1, 1, d) if inner else (1, 1, c, d)))
    axis = 3 if inner else 2
    power = np.exp(x + bias)
    total = power.sum(axis=tuple(range(axis, 4)), keepdims=True)
    return Case([x, bias], {"axis": axis, "is_inner_broadcast": int(inner)}, results=[power / total])


def product_shapes(r: Random) -> tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]:
    """Returns the shapes of two batches of matrices and the flags that transpose them."""
    m, k, n = r.size(1, 6), r.size(1, 6), r.size(1, 6)
    batch = tuple(r.size(1, 3) for _ in range(r.size(0, 2)))
    trans_a, trans_b = r.flag(), r.flag()
    a = (*batch, *((k, m) if trans_a else (m, k)))
    b = (*(batch if r.flag() else ()), *((n, k) if trans_b else (k, n)))
    return a, b, {"transA": int(trans_a), "transB": int(trans_b)}


@case("FusedMatMul")
def fused_matmul(r: Random) -> Case:
    """A scaled product of transposed matrices, perhaps with a batch dimension behind the rows."""
    if r.flag():
        a, b, flags = product_shapes(r)
        return Case([r.floats(*a), r.floats(*b)], {**flags, "alpha": float(r.choice([1.0, 0.5]))})
    b, m, k, n = (r.size(1, 5) for _ in range(4))
    return Case([r.floats(m, b, k), r.floats(b, k, n)], {"transBatchA": 1})


@case("TransposeMatMul")
def transpose_matmul(r: Random) -> Case:
    """FusedMatMul under its old name."""
    a, b, flags = product_shapes(r)
    return Case([r.floats(*a), r.floats(*b)], {**flags, "alpha": 0.25})


@case("FusedMatMulActivation")
def fused_matmul_activation(r: Random) -> Case:
    """A product and an activation."""
    a_shape, b_shape, flags = product_shapes(r)
    a, b = r.floats(*a_shape), r.floats(*b_shape)
    left = a.swapaxes(-1, -2) if flags["transA"] else a
    right = b.swapaxes(-1, -2) if flags["transB"] else b
    return Case([a, b], {**flags, "activation": "Tanh"}, results=[np.tanh(left @ right)])


def activation(r: Random) -> tuple[str, list[float]]:
    """Returns an activation and its parameters."""
    return r.choice(
        [
            ("Relu", []),
            ("Tanh", []),
            ("Sigmoid", []),
            ("LeakyRelu", [0.2]),
            ("Clip", [-0.5, 0.5]),
            ("HardSigmoid", [0.3, 0.4]),
        ]
    )


@case("FusedGemm")
def fused_gemm(r: Random) -> Case:
    """A Gemm and an activation."""
    m, k, n = r.size(1, 6), r.size(1, 6), r.size(1, 6)
    trans_a, trans_b = r.flag(), r.flag()
    name, numbers = r.choice([("Relu", []), ("LeakyRelu", [0.2]), ("Tanh", [])])
    attributes: dict[str, Any] = {
        "transA": int(trans_a),
        "transB": int(trans_b),
        "alpha": 0.5,
        "beta": 2.0,
        "activation": name,
    }
    if numbers:
        attributes["activation_alpha"] = numbers[0]
    a = r.floats(*((k, m) if trans_a else (m, k)))
    b = r.floats(*((n, k) if trans_b else (k, n)))
    return Case([a, b, r.floats(n)], attributes)


@case("FusedConv")
def fused_conv(r: Random) -> Case:
    """A convolution, a sum and an activation."""
    group = r.choice([1, 2])
    channels, outputs, k = 2 * group, 2 * group, r.choice([1, 3])
    name, numbers = activation(r)
    attributes: dict[str, Any] = {"kernel_shape": [k, k], "pads": [k // 2] * 4, "group": group, "activation": name}
    if numbers:
        attributes["activation_params"] = numbers
    h, w, n = r.size(3, 7), r.size(3, 7), r.size(1, 2)
    inputs: list[Array | None] = [
        r.floats(n, channels, h, w),
        r.floats(outputs, channels // group, k, k),
        r.floats(outputs),
    ]
    if r.flag():
        inputs.append(r.floats(n, outputs, h, w))
    return Case(inputs, attributes, weights=(1, 2))


@case("NhwcFusedConv")
def nhwc_fused_conv(r: Random) -> Case:
    """A convolution of one pixel whose channels lie last, a sum and an activation."""
    n, h, w, c, o = 1, r.size(1, 4), r.size(1, 4), r.size(1, 4), r.size(1, 4)
    x, weight, bias, other = r.floats(n, h, w, c), r.floats(o, c, 1, 1), r.floats(o), r.floats(n, h, w, o)
    result = np.maximum(x @ weight[:, :, 0, 0].T + bias + other, 0)
    return Case(
        [x, weight, bias, other], {"activation": "Relu", "kernel_shape": [1, 1]}, weights=(1, 2), results=[result]
    )


@case("NhwcMaxPool")
def nhwc_max_pool(r: Random) -> Case:
    """A pool of bytes whose channels lie last."""
    dtype = r.choice([np.uint8, np.int8])
    return Case(
        [r.bytes(1, r.size(4, 8), r.size(4, 8), 3, dtype=dtype)],
        {"kernel_shape": [2, 2], "strides": [r.size(1, 2)] * 2},
    )


@case("Trilu")
def trilu(r: Random) -> Case:
    """A triangle of a matrix."""
    return Case([r.floats(*r.shape(2, 3)), np.array(r.size(-2, 2))], {"upper": int(r.flag())}, weights=(1,))


@case("GatherND")
def gather_nd(r: Random) -> Case:
    """Rows at tuples of indices."""
    return Case([r.floats(4, 5, 2), r.below(4, r.size(1, 3), 2)])


@case("Range")
def numbers_in_range(r: Random) -> Case:
    """Numbers with a step."""
    start, step = r.size(-3, 3), r.size(1, 3)
    return Case([np.array(v, np.int64) for v in (start, start + r.size(1, 9), step)], weights=(0, 1, 2))


@case("SkipLayerNormalization")
def skip_layer_norm(r: Random) -> Case:
    """The norm of a sum."""
    b, s, h = r.size(1, 3), r.size(1, 5), r.choice([4, 8, 12])
    inputs: list[Array | None] = [r.floats(b, s, h), r.floats(b, s, h), r.floats(h), r.floats(h) if r.flag() else None]
    if r.flag():
        inputs.append(r.floats(h))
    return Case(inputs, {"epsilon": 1e-5}, outputs=(True, False, False, r.flag()), weights=(2, 3, 4))


@case("SkipSimplifiedLayerNormalization")
def skip_rms_norm(r: Random) -> Case:
    """The root mean square norm of a sum."""
    b, s, h = r.size(1, 3), r.size(1, 5), r.choice([4, 8, 12])
    inputs: list[Array | None] = [r.floats(b, s, h), r.floats(b, s, h), r.floats(h)]
    if r.flag():
        inputs.append(r.floats(h))
    return Case(inputs, {"epsilon": 1e-6}, outputs=(True, False, False, r.flag()), weights=(2, 3))


@case("SimplifiedLayerNormalization")
def simplified_layer_norm(r: Random) -> Case:
    """The root mean square norm, in ONNX's own domain."""
    shape = r.shape(2, 3)
    return Case([r.floats(*shape), r.floats(shape[-1])], {"axis": -1, "epsilon": 1e-5}, weights=(1,), domain="")


@case("EmbedLayerNormalization")
def embed_layer_norm(r: Random) -> Case:
    """Tables of words, positions and segments, and the norm of their sum."""
    b, s, h = r.size(1, 3), r.size(1, 5), 8
    segments = r.flag()
    inputs: list[Array | None] = [
        r.below(20, b, s, dtype=np.int32),
        r.below(2, b, s, dtype=np.int32) if segments else None,
        r.floats(20, h),
        r.floats(6, h),
        r.floats(2, h) if segments else None,
        r.floats(h),
        r.floats(h),
    ]
    has_mask = r.flag()
    if has_mask:
        lengths = r.below(s + 1, b)
        inputs.append((np.arange(s) < lengths[:, None]).astype(np.int32))
    return Case(inputs, {"epsilon": 1e-5}, outputs=(True, True), weights=(2, 3, 4, 5, 6))
