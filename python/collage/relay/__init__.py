"""Relay: programs as graphs of expressions, built, read, printed.

>>> from collage import relay
>>> x = relay.var("x", shape=(1, 3, 8, 8))
>>> w = relay.var("w", shape=(4, 3, 3, 3))
>>> f = relay.Function([x, w], relay.nn.relu(relay.nn.conv2d(x, w, padding=[1, 1])))
>>> str(f.infer_type())
'fn (Tensor[(1, 3, 8, 8), float32], Tensor[(4, 3, 3, 3), float32]) -> Tensor[(1, 4, 8, 8), float32]'

Every operator of the table is here under its name: ``relay.add(x, y)``, ``relay.nn.dense(x, w)``; attributes are keyword
arguments. Numbers, lists and arrays among the arguments become constants.
"""

from __future__ import annotations

from collage._core import (
    Call,
    Constant,
    Constructor,
    Expr,
    Function,
    FuncType,
    GlobalVar,
    If,
    Let,
    Match,
    Op,
    Pattern,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Type,
    Var,
    parse_type,
    ref_create,
    ref_read,
    ref_write,
)
from collage.relay import collage, dataflow_pattern, vm
from collage.relay.builder import (
    Operator,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    PatternWildcard,
    as_expr,
    call,
    const,
    get_op,
    op_names,
    parse,
    parse_expr,
    var,
)

__all__ = [
    "Call",
    "Constant",
    "Constructor",
    "Expr",
    "FuncType",
    "Function",
    "GlobalVar",
    "If",
    "Let",
    "Match",
    "Op",
    "Operator",
    "Pattern",
    "PatternConstructor",
    "PatternTuple",
    "PatternVar",
    "PatternWildcard",
    "TensorType",
    "Tuple",
    "TupleGetItem",
    "TupleType",
    "Type",
    "Var",
    "as_expr",
    "call",
    "collage",
    "const",
    "dataflow_pattern",
    "get_op",
    "op_names",
    "parse",
    "parse_expr",
    "parse_type",
    "ref_create",
    "ref_read",
    "ref_write",
    "var",
    "vm",
]


def __getattr__(name: str) -> Operator:
    """Operators, and families of them such as `nn`."""
    if Operator.exists(name):
        return Operator(name)
    raise AttributeError(f"module 'collage.relay' has no attribute '{name}', and there is no such operator")


def __dir__() -> list[str]:
    return [*__all__, *sorted({name.split(".")[0] for name in op_names()})]
