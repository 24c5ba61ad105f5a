"""Patterns over dataflow, to find sub-graphs and to make them partitions.

>>> from collage import relay
>>> conv = is_op("nn.conv2d")(wildcard(), is_constant())
>>> pattern = conv.optional(lambda x: is_op("nn.relu")(x))
>>> str(pattern)
'nn.relu?(nn.conv2d(*, const))'
>>> x = relay.var("x", shape=(1, 1, 4, 4))
>>> y = relay.nn.relu(relay.nn.conv2d(x, relay.const([[[[2.0]]]])))
>>> pattern.match(y), [len(inside) for inside in pattern.matches(y)]
(True, [3])

The text of a pattern is what toolchains' tables and the rules of `collage.relay.collage` hold; `parse_pattern` reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from collage._core import (
    DFPattern,
    Expr,
    Function,
    any_call,
    dominates,
    is_constant,
    is_expr,
    is_function,
    is_if,
    is_let,
    is_op,
    is_tuple,
    is_tuple_get_item,
    is_var,
    parse_pattern,
    wildcard,
)

__all__ = [
    "DFPattern",
    "any_call",
    "dominates",
    "has_attr",
    "has_dtype",
    "has_shape",
    "has_type",
    "is_constant",
    "is_expr",
    "is_function",
    "is_if",
    "is_let",
    "is_op",
    "is_tuple",
    "is_tuple_get_item",
    "is_var",
    "match",
    "parse_pattern",
    "partition",
    "wildcard",
]


def has_attr(attrs: Mapping[str, object], pattern: DFPattern) -> DFPattern:
    """Matches calls or functions that ``pattern`` matches and that have these attributes; as ``pattern.has_attr(attrs)``."""
    return pattern.has_attr(dict(attrs))


def has_dtype(dtype: str, pattern: DFPattern | None = None) -> DFPattern:
    """A tensor of this dtype that ``pattern`` (anything, if none is given) matches."""
    return (pattern or wildcard()).has_dtype(dtype)


def has_shape(shape: list[int | None], pattern: DFPattern | None = None) -> DFPattern:
    """A tensor of this shape (None: any size) that ``pattern`` matches.

    >>> str(has_shape([1, None]))
    '*:[1, ?]'
    """
    return (pattern or wildcard()).has_shape(shape)


def has_type(type_: object, pattern: DFPattern | None = None) -> DFPattern:
    """A tensor of this type that ``pattern`` matches."""
    from collage._core import Type

    if not isinstance(type_, Type):
        raise TypeError(f"a type is wanted, got {type_!r}")
    return (pattern or wildcard()).has_type(type_)


def match(pattern: DFPattern, expr: Expr) -> bool:
    """Whether ``pattern`` matches with ``expr`` as its root."""
    return pattern.match(expr)


def partition(
    pattern: DFPattern,
    expr: Expr,
    attrs: Mapping[str, object] | None = None,
    check: Callable[[Function], bool] | None = None,
) -> Expr:
    """``expr`` with every match as a call of a function.

    >>> from collage import relay
    >>> x = relay.var("x", shape=(2,))
    >>> y = partition(is_op("add")(wildcard(), wildcard()), relay.add(x, x), {"Composite": "acme.add"})
    >>> 'Composite="acme.add"' in str(y)
    True

    Args:
        pattern: what to look for. Matches that have more than one result are left alone.
        expr: an expression or a function.
        attrs: attributes of the functions; ``PartitionedFromPattern`` when there are none.
        check: asked of each match, as a typed function, whether to take it.
    """
    return pattern.partition(expr, dict(attrs or {}), check)
