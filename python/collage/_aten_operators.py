"""Translations of ATen's operators into Relay; ``_aten`` has the table of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from collage import relay
from collage._core import Expr, TensorType
from collage.errors import UnsupportedError

_DTYPES = {
    "float32": "float32",
    "float64": "float64",
    "float16": "float16",
    "bfloat16": "bfloat16",
    "int8": "int8",
    "uint8": "uint8",
    "int16": "int16",
    "int32": "int32",
    "int64": "int64",
    "bool": "bool",
}


def dtype_name(dtype: Any) -> str:
    """The name of a ``torch.dtype``."""
    name = str(dtype).removeprefix("torch.")
    if name not in _DTYPES:
        raise UnsupportedError(f"tensors of {name}")
    return _DTYPES[name]


def _type(x: Expr) -> TensorType:
    type_ = x.checked_type if x.checked_type is not None else x.infer_type()
    if not isinstance(type_, TensorType):
        raise UnsupportedError(f"a value of type {type_} where a tensor is wanted")
    return type_


def _shape(x: Expr) -> list[int]:
    return [int(size) for size in _type(x).shape if size is not None]


def _rank(x: Expr) -> int:
    return len(_type(x).shape)


def _axis(axis: int, rank: int) -> int:
    return axis + rank if axis < 0 else axis


def _scalar(value: float, dtype: str) -> Expr:
    return relay.const(np.asarray(value, dtype=dtype))


def _is_float(dtype: str) -> bool:
    return dtype.startswith(("float", "bfloat"))


_ORDER = ["bool", "uint8", "int8", "int16", "int32", "int64", "bfloat16", "float16", "float32", "float64"]


def _together(a: Any, b: Any) -> tuple[Expr, Expr]:
    """Two operands, of which one may be a number, in the dtype that torch computes in."""
    tensors = [x for x in (a, b) if isinstance(x, Expr)]
    dtypes = [_type(x).dtype for x in tensors]
    dtype = max(dtypes, key=_ORDER.index)
    for x in (a, b):
        if isinstance(x, float) and not _is_float(dtype):
            dtype = "float32"
    return _as(a, dtype), _as(b, dtype)


def _as(x: Any, dtype: str) -> Expr:
    if not isinstance(x, Expr):
        return _scalar(x, dtype)
    return x if _type(x).dtype == dtype else relay.cast(x, dtype=dtype)


def _unary(op: Callable[[Expr], Expr]) -> Callable[..., Expr]:
    def convert(x: Expr) -> Expr:
        return op(x if _is_float(_type(x).dtype) else relay.cast(x, dtype="float32"))

    return convert


def _binary(op: Callable[[Expr, Expr], Expr]) -> Callable[..., Expr]:
    return lambda a, b: op(*_together(a, b))


def _scaled(op: Callable[[Expr, Expr], Expr]) -> Callable[..., Expr]:
    def convert(a: Any, b: Any, alpha: float = 1) -> Expr:
        if alpha != 1:
            b = b * alpha if not isinstance(b, Expr) else relay.multiply(b, _scalar(alpha, _type(b).dtype))
        return op(*_together(a, b))

    return convert


def _divide(a: Any, b: Any, rounding_mode: str | None = None) -> Expr:
    x, y = _together(a, b)
    if rounding_mode == "floor":
        return relay.floor_divide(x, y)
    if rounding_mode == "trunc":
        return relay.divide(x, y) if not _is_float(_type(x).dtype) else relay.trunc(relay.divide(x, y))
    if not _is_float(_type(x).dtype):
        x, y = _as(x, "float32"), _as(y, "float32")
    return relay.divide(x, y)


def _power(a: Any, b: Any) -> Expr:
    if b == 2:
        return relay.multiply(a, a)
    return relay.power(*_together(a, b))


def _clip(x: Expr, low: float | None = None, high: float | None = None) -> Expr:
    if isinstance(low, Expr) or isinstance(high, Expr):
        raise UnsupportedError("bounds that are tensors")
    return relay.clip(
        x, a_min=-math.inf if low is None else float(low), a_max=math.inf if high is None else float(high)
    )


def _gelu(x: Expr, approximate: str = "none") -> Expr:
    dtype = _type(x).dtype
    if approximate == "tanh":
        cube = relay.multiply(relay.multiply(x, x), x)
        inner = relay.add(x, relay.multiply(cube, _scalar(0.044715, dtype)))
        part = relay.tanh(relay.multiply(inner, _scalar(math.sqrt(2 / math.pi), dtype)))
    else:
        part = relay.erf(relay.multiply(x, _scalar(math.sqrt(0.5), dtype)))
    return relay.multiply(relay.multiply(x, _scalar(0.5, dtype)), relay.add(part, _scalar(1.0, dtype)))


def _elu(x: Expr, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Expr:
    dtype = _type(x).dtype
    below = relay.subtract(relay.exp(relay.multiply(relay.minimum(x, _scalar(0, dtype)), _scalar(input_scale, dtype))),
                           _scalar(1, dtype))  # fmt: skip
    total = relay.add(relay.nn.relu(x), relay.multiply(below, _scalar(alpha, dtype)))
    return total if scale == 1 else relay.multiply(total, _scalar(scale, dtype))


def _sizes(values: Sequence[int], rank: int) -> list[int]:
    return list(values) * rank if len(values) == 1 else list(values)


def _bias(result: Expr, bias: Expr | None) -> Expr:
    if bias is None:
        return result
    return relay.add(result, relay.reshape(bias, newshape=[-1] + [1] * (_rank(result) - 2)))


def _convolution(x: Expr, weight: Expr, bias: Expr | None, stride: Sequence[int], padding: Sequence[int],
                 dilation: Sequence[int], transposed: bool, output_padding: Sequence[int], groups: int) -> Expr:  # fmt: skip
    rank = _rank(weight) - 2
    attrs: dict[str, Any] = {
        "strides": _sizes(stride, rank),
        "padding": _sizes(padding, rank) * 2,
        "dilation": _sizes(dilation, rank),
        "groups": groups,
        "kernel_size": _shape(weight)[2:],
    }
    if transposed:
        attrs["output_padding"] = _sizes(output_padding, rank)
        attrs["channels"] = _shape(weight)[1] * groups
        op = {1: relay.nn.conv1d_transpose, 2: relay.nn.conv2d_transpose, 3: relay.nn.conv3d_transpose}[rank]
    else:
        attrs["channels"] = _shape(weight)[0]
        op = {1: relay.nn.conv1d, 2: relay.nn.conv2d, 3: relay.nn.conv3d}[rank]
    return _bias(op(x, weight, **attrs), bias)


def _batch_norm(x: Expr, weight: Expr | None, bias: Expr | None, mean: Expr, variance: Expr, momentum: float,
                eps: float) -> list[Any]:  # fmt: skip
    channels, dtype = _shape(x)[1], _type(x).dtype
    gamma = weight if weight is not None else relay.const(np.ones(channels, dtype))
    beta = bias if bias is not None else relay.const(np.zeros(channels, dtype))
    return [relay.TupleGetItem(relay.nn.batch_norm(x, gamma, beta, mean, variance, epsilon=eps), 0), None, None]


def _native_batch_norm(x: Expr, weight: Expr | None, bias: Expr | None, mean: Expr, variance: Expr, training: bool,
                       momentum: float, eps: float) -> list[Any]:  # fmt: skip
    if training:
        raise UnsupportedError("batch normalisation in training")
    return _batch_norm(x, weight, bias, mean, variance, momentum, eps)


def _layer_norm(x: Expr, normalized: Sequence[int], weight: Expr | None, bias: Expr | None, eps: float) -> list[Any]:
    shape, dtype = _shape(x), _type(x).dtype
    length = math.prod(normalized)
    flat = relay.reshape(x, newshape=[*shape[: len(shape) - len(normalized)], length])
    gamma = relay.const(np.ones(length, dtype)) if weight is None else relay.reshape(weight, newshape=[length])
    beta = relay.const(np.zeros(length, dtype)) if bias is None else relay.reshape(bias, newshape=[length])
    return [relay.reshape(relay.nn.layer_norm(flat, gamma, beta, epsilon=eps), newshape=shape), None, None]


def _group_norm(x: Expr, weight: Expr | None, bias: Expr | None, n: int, c: int, hw: int, groups: int,
                eps: float) -> list[Any]:  # fmt: skip
    dtype = _type(x).dtype
    gamma = weight if weight is not None else relay.const(np.ones(c, dtype))
    beta = bias if bias is not None else relay.const(np.zeros(c, dtype))
    return [relay.nn.group_norm(x, gamma, beta, num_groups=groups, axis=1, epsilon=eps), None, None]


def _dense(a: Expr, b: Expr) -> Expr:
    return relay.nn.dense(a, relay.transpose(b, axes=[1, 0]))


def _addmm(c: Expr, a: Expr, b: Expr, beta: float = 1, alpha: float = 1) -> Expr:
    product = _dense(a, b)
    if alpha != 1:
        product = relay.multiply(product, _scalar(alpha, _type(product).dtype))
    return relay.add(product, c if beta == 1 else relay.multiply(c, _scalar(beta, _type(c).dtype)))


def _pool_attrs(
    kernel: Sequence[int], stride: Sequence[int], padding: Sequence[int], ceil_mode: bool
) -> dict[str, Any]:
    size = _sizes(kernel, 2)
    return {
        "pool_size": size,
        "strides": _sizes(stride, 2) if stride else size,
        "padding": _sizes(padding, 2) * 2,
        "ceil_mode": ceil_mode,
    }


def _max_pool2d(x: Expr, kernel: Sequence[int], stride: Sequence[int] = (), padding: Sequence[int] = (0,),
                dilation: Sequence[int] = (1,), ceil_mode: bool = False) -> list[Any]:  # fmt: skip
    attrs = _pool_attrs(kernel, stride, padding, ceil_mode)
    return [relay.nn.max_pool2d(x, dilation=_sizes(dilation, 2), **attrs), None]


def _avg_pool2d(x: Expr, kernel: Sequence[int], stride: Sequence[int] = (), padding: Sequence[int] = (0,),
                ceil_mode: bool = False, count_include_pad: bool = True, divisor: int | None = None) -> Expr:  # fmt: skip
    if divisor is not None:
        raise UnsupportedError("a divisor other than the size of the window")
    return relay.nn.avg_pool2d(
        x, count_include_pad=count_include_pad, **_pool_attrs(kernel, stride, padding, ceil_mode)
    )


def _reduce(op: Callable[..., Expr]) -> Callable[..., Expr]:
    def convert(x: Expr, axes: Any = None, keepdim: bool = False, dtype: Any = None) -> Expr:
        if dtype is not None:
            x = _as(x, dtype_name(dtype))
        axes = [axes] if isinstance(axes, int) else list(axes or []) or None
        return op(x, axis=axes, keepdims=keepdim)

    return convert


def _view(x: Expr, shape: Sequence[int]) -> Expr:
    return relay.reshape(x, newshape=[int(size) for size in shape]) if 0 not in shape else relay.reshape(
        x, newshape=list(shape), allowzero=True)  # fmt: skip


def _transpose(x: Expr, a: int, b: int) -> Expr:
    axes = list(range(_rank(x)))
    a, b = _axis(a, len(axes)), _axis(b, len(axes))
    axes[a], axes[b] = b, a
    return relay.transpose(x, axes=axes)


def _expand(x: Expr, sizes: Sequence[int], implicit: bool = False) -> Expr:
    shape = [1] * (len(sizes) - _rank(x)) + _shape(x)
    wanted = [old if size == -1 else size for size, old in zip(sizes, shape)]
    return x if wanted == _shape(x) else relay.broadcast_to(x, shape=wanted)


def _squeeze(x: Expr, dims: Any = None) -> Expr:
    shape = _shape(x)
    dims = range(len(shape)) if dims is None else [dims] if isinstance(dims, int) else dims
    gone = {_axis(d, len(shape)) for d in dims if shape[d] == 1}
    return relay.reshape(x, newshape=[size for d, size in enumerate(shape) if d not in gone])


def _slice(x: Expr, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Expr:
    length = _shape(x)[dim]
    begin, stop = 0 if start is None else start, length if end is None else min(end, length)
    if begin == 0 and stop == length and step == 1:
        return x
    return relay.strided_slice(x, begin=[begin], end=[stop], strides=[step], axes=[_axis(dim, _rank(x))])


def _select(x: Expr, dim: int, index: int) -> Expr:
    axis, shape = _axis(dim, _rank(x)), _shape(x)
    index = index + shape[axis] if index < 0 else index
    part = relay.strided_slice(x, begin=[index], end=[index + 1], strides=[1], axes=[axis])
    return relay.reshape(part, newshape=shape[:axis] + shape[axis + 1 :])


def _split(x: Expr, sizes: Sequence[int], dim: int = 0) -> list[Any]:
    cuts = [int(cut) for cut in np.cumsum(sizes)[:-1]]
    if not cuts:
        return [x]
    parts = relay.split(x, indices_or_sections=cuts, axis=dim)
    return [relay.TupleGetItem(parts, i) for i in range(len(sizes))]


def _cat(parts: Sequence[Expr], dim: int = 0) -> Expr:
    return relay.concatenate(relay.Tuple([part for part in parts if _shape(part) != [0]]), axis=dim)


def _pad(x: Expr, pads: Sequence[int], value: float = 0) -> Expr:
    widths = [[0, 0] for _ in range(_rank(x))]
    for i in range(len(pads) // 2):
        widths[-1 - i] = [pads[2 * i], pads[2 * i + 1]]
    return relay.nn.pad(x, _scalar(value, _type(x).dtype), pad_width=widths)


def _to_copy(x: Expr, dtype: Any = None, **_: Any) -> Expr:
    return x if dtype is None else _as(x, dtype_name(dtype))


def _full(shape: Sequence[int], value: float, dtype: Any = None, **_: Any) -> Expr:
    name = dtype_name(dtype) if dtype is not None else "float32" if isinstance(value, float) else "int64"
    return relay.const(np.full(shape, value, name))


def _arange(start: float, end: float, step: float = 1, dtype: Any = None, **_: Any) -> Expr:
    return relay.const(np.arange(start, end, step).astype(dtype_name(dtype) if dtype is not None else "int64"))


def _softmax(op: Callable[..., Expr]) -> Callable[..., Expr]:
    return lambda x, dim, half_to_float=False: op(x, axis=dim)


def _attention(q: Expr, k: Expr, v: Expr, dropout: float = 0.0, is_causal: bool = False, attn_mask: Expr | None = None,
               scale: float | None = None) -> list[Any]:  # fmt: skip
    """softmax(q k^T scale + mask) v, of [B, H, S, D]."""
    if dropout != 0:
        raise UnsupportedError("dropout")
    (b, h, s, d), t, dtype = _shape(q), _shape(k)[2], _type(q).dtype
    dv = _shape(v)[3]
    q, k, v = (relay.reshape(x, newshape=[b * h, -1, _shape(x)[3]]) for x in (q, k, v))
    scores = relay.nn.batch_matmul(q, k, transpose_b=True)
    scores = relay.multiply(scores, _scalar(1 / math.sqrt(d) if scale is None else scale, dtype))
    scores = relay.reshape(scores, newshape=[b, h, s, t])
    if is_causal:
        scores = relay.add(scores, relay.const(np.triu(np.full((s, t), -np.inf, dtype), 1)))
    if attn_mask is not None:
        scores = relay.add(scores, attn_mask)
    weights = relay.reshape(relay.nn.softmax(scores, axis=-1), newshape=[b * h, s, t])
    return [relay.reshape(relay.nn.batch_matmul(weights, v), newshape=[b, h, s, dv]), None]


def _adaptive_avg_pool(x: Expr, size: Sequence[int]) -> Expr:
    return relay.nn.adaptive_avg_pool2d(x, output_size=list(size))
