"""Graphs of ATen's core operators (torch.fx) as functions of Relay. A row per operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from collage import relay
from collage._aten_operators import (
    _adaptive_avg_pool,
    _addmm,
    _arange,
    _as,
    _attention,
    _avg_pool2d,
    _axis,
    _batch_norm,
    _binary,
    _cat,
    _clip,
    _convolution,
    _dense,
    _divide,
    _elu,
    _expand,
    _full,
    _gelu,
    _group_norm,
    _layer_norm,
    _max_pool2d,
    _native_batch_norm,
    _pad,
    _power,
    _rank,
    _reduce,
    _scalar,
    _scaled,
    _select,
    _shape,
    _slice,
    _softmax,
    _split,
    _squeeze,
    _to_copy,
    _together,
    _transpose,
    _type,
    _unary,
    _view,
    dtype_name,
)
from collage._core import Expr, Function
from collage.errors import UnsupportedError

_ROWS: dict[str, Callable[..., Any]] = {
    **{name: _unary(getattr(relay, name))
       for name in ("exp", "log", "sqrt", "rsqrt", "erf", "sin", "cos", "tan", "tanh", "sigmoid", "asin", "acos", "atan",
                    "sinh", "cosh")},
    **{name: getattr(relay, name) for name in ("abs", "floor", "ceil", "round", "trunc", "sign", "isnan", "isinf")},
    **{name: _binary(getattr(relay, op))
       for name, op in {"maximum": "maximum", "minimum": "minimum", "eq": "equal", "ne": "not_equal", "lt": "less",
                        "le": "less_equal", "gt": "greater", "ge": "greater_equal", "logical_and": "logical_and",
                        "logical_or": "logical_or", "bitwise_and": "logical_and", "mul": "multiply",
                        "fmod": "mod", "remainder": "floor_mod"}.items()},
    "relu": lambda x: relay.nn.relu(x),
    "neg": lambda x: relay.negative(x),
    "logical_not": lambda x: relay.logical_not(_as(x, "bool")),
    "bitwise_not": lambda x: relay.logical_not(x) if _type(x).dtype == "bool" else relay.bitwise_not(x),
    "reciprocal": lambda x: relay.divide(_scalar(1, _type(x).dtype), x),
    "add": _scaled(relay.add),
    "sub": _scaled(relay.subtract),
    "div": _divide,
    "pow": _power,
    "clamp": _clip,
    "hardtanh": lambda x, low=-1, high=1: _clip(x, low, high),
    "leaky_relu": lambda x, slope=0.01: relay.nn.leaky_relu(x, alpha=slope),
    "gelu": _gelu,
    "elu": _elu,
    "silu": lambda x: relay.multiply(x, relay.sigmoid(x)),
    "where": lambda c, a, b: relay.where(c, *_together(a, b)),
    "convolution": _convolution,
    "_native_batch_norm_legit_no_training": _batch_norm,
    "native_batch_norm": _native_batch_norm,
    "native_layer_norm": _layer_norm,
    "native_group_norm": _group_norm,
    "mm": _dense,
    "addmm": _addmm,
    "bmm": lambda a, b: relay.nn.batch_matmul(a, b),
    "max_pool2d_with_indices": _max_pool2d,
    "avg_pool2d": _avg_pool2d,
    "_adaptive_avg_pool2d": _adaptive_avg_pool,
    "mean": _reduce(relay.mean),
    "sum": _reduce(relay.sum),
    "amax": _reduce(relay.max),
    "amin": _reduce(relay.min),
    "any": _reduce(relay.any),
    "argmax": lambda x, dim=None, keepdim=False: relay.argmax(x, axis=None if dim is None else [dim], keepdims=keepdim),
    "view": _view,
    "_unsafe_view": _view,
    "reshape": _view,
    "permute": lambda x, axes: relay.transpose(x, axes=[_axis(axis, _rank(x)) for axis in axes]),
    "t": lambda x: _transpose(x, 0, 1),
    "transpose": _transpose,
    "expand": _expand,
    "squeeze": _squeeze,
    "unsqueeze": lambda x, dim: relay.expand_dims(x, axis=_axis(dim, _rank(x) + 1)),
    "slice": _slice,
    "select": _select,
    "split_with_sizes": _split,
    "cat": _cat,
    "constant_pad_nd": _pad,
    "clone": lambda x, **_: x,
    "alias": lambda x: x,
    "detach": lambda x: x,
    "lift_fresh_copy": lambda x: x,
    "_to_copy": _to_copy,
    "full": _full,
    "full_like": lambda x, value, dtype=None, **_: relay.const(
        np.full(_shape(x), value, dtype_name(dtype) if dtype is not None else _type(x).dtype)),
    "empty": lambda shape, dtype=None, **_: _full(shape, 0.0, dtype),  # room that the normalisation does not need here
    "arange": _arange,
    "scalar_tensor": lambda value, dtype=None, **_: _full([], value, dtype),
    "_softmax": _softmax(relay.nn.softmax),
    "_log_softmax": _softmax(relay.nn.log_softmax),
    "embedding": lambda weight, indices, *_: relay.take(weight, indices, axis=0),
    "index_select": lambda x, dim, indices: relay.take(x, indices, axis=_axis(dim, _rank(x))),
    "gather": lambda x, dim, indices, **_: relay.gather(x, indices, axis=dim),
    "cumsum": lambda x, dim, dtype=None: relay.cumsum(_to_copy(x, dtype), axis=_axis(dim, _rank(x))),
    "_scaled_dot_product_flash_attention_for_cpu": _attention,
}  # fmt: skip


def operators() -> list[str]:
    """The names of the operators that have a row."""
    return sorted(_ROWS)


def to_relay(graph_module: Any, values: Sequence[Any]) -> tuple[Function, list[int | None]]:
    """A function that computes a graph's tensors.

    Args:
        graph_module: a ``torch.fx.GraphModule`` of ATen's operators.
        values: for each placeholder, a ``relay.Var`` or what it is bound to.

    Returns:
        The function, of those values that are variables, and for each of the graph's results which of the function's it is,
        None for a result that is None.

    Raises:
        UnsupportedError: operators without a row, all of them at once.
    """
    known: dict[Any, Any] = {}
    placeholders = iter(values)
    nodes = list(graph_module.graph.nodes)
    missing = {_name(node) for node in nodes if node.op == "call_function" and _name(node) not in {*_ROWS, "getitem"}}
    if missing:
        raise UnsupportedError(f"there is no row for {', '.join(sorted(missing))}")

    def value(argument: Any) -> Any:
        if isinstance(argument, (list, tuple)):
            return [value(item) for item in argument]
        try:
            return known[argument] if argument in known else argument
        except TypeError:
            return argument

    results: list[Any] = []
    for node in nodes:
        if node.op == "placeholder":
            known[node] = next(placeholders)
        elif node.op == "get_attr":
            known[node] = relay.const(getattr(graph_module, node.target).detach().cpu().numpy())
        elif node.op == "call_function":
            args = [value(argument) for argument in node.args]
            if _name(node) == "getitem":
                known[node] = args[0][args[1]]
                continue
            made = _ROWS[_name(node)](*args, **{key: value(item) for key, item in node.kwargs.items()})
            for one in made if isinstance(made, list) else [made]:
                if isinstance(one, Expr):
                    one.infer_type()
            known[node] = made
        elif node.op == "output":
            results = value(node.args[0])
        else:
            raise UnsupportedError(f"a node of kind '{node.op}'")
    if not isinstance(results, list):
        results = [results]
    tensors = [one for one in results if isinstance(one, Expr)]
    places = iter(range(len(tensors)))
    where = [next(places) if isinstance(one, Expr) else None for one in results]
    params = [one for one in values if isinstance(one, relay.Var)]
    body = tensors[0] if len(tensors) == 1 else relay.Tuple(tensors)
    return relay.Function(params, body), where


def _name(node: Any) -> str:
    """ "add" of aten.add.Tensor."""
    target = node.target
    packet = getattr(target, "overloadpacket", None)
    return str(packet.__name__ if packet is not None else getattr(target, "__name__", target))
