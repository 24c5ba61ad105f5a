"""Building programs: variables, constants, calls of operators by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from collage import _core
from collage._core import Constant, Constructor, Expr, IRModule, Op, Pattern, TensorType, Tuple, Type, Var

__all__ = [
    "Operator",
    "PatternConstructor",
    "PatternTuple",
    "PatternVar",
    "PatternWildcard",
    "as_expr",
    "call",
    "const",
    "get_op",
    "op_names",
    "parse",
    "parse_expr",
    "var",
]


def var(
    name_hint: str,
    type_annotation: Type | str | None = None,
    shape: Sequence[int | str | None] | None = None,
    dtype: str = "float32",
) -> Var:
    """A variable, equal to no other.

    >>> str(var("x", shape=(1, None)).type_annotation), str(var("y", "bool").type_annotation)
    ('Tensor[(1, ?), float32]', 'bool')

    Args:
        name_hint: its name in texts.
        type_annotation: its type, or the text of one.
        shape: sizes, for a tensor; None or "?" for one that is known at run time only.
        dtype: element type, with ``shape``.
    """
    if shape is not None:
        if type_annotation is not None:
            raise ValueError("give 'type_annotation' or 'shape', not both")
        return Var(name_hint, TensorType(shape, dtype))
    if isinstance(type_annotation, str):
        type_annotation = _core.parse_type(type_annotation)
    return Var(name_hint, type_annotation)


def const(value: Any, dtype: str | None = None) -> Constant:
    """A constant with a copy of a number, a list or an array.

    Numbers and lists of Python become float32, int32 or bool unless a dtype is given; arrays keep theirs.

    >>> const([1, 2]).data.dtype, const(np.zeros(2)).data.dtype
    (dtype('int32'), dtype('float64'))
    """
    if isinstance(value, (bool, int, float, list, tuple)):
        array = np.asarray(value)
        if dtype is None:
            dtype = {"float64": "float32", "int64": "int32"}.get(str(array.dtype), str(array.dtype))
        value = array
    if dtype == "bfloat16":
        import ml_dtypes

        value = np.asarray(value).astype(ml_dtypes.bfloat16)
    elif dtype is not None:
        value = np.asarray(value).astype(dtype)
    return Constant(value)


def as_expr(value: Any) -> Expr:
    """An expression as it is; a tuple or a list of expressions as a tuple; anything else as a constant."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, (tuple, list)) and any(isinstance(one, Expr) for one in value):
        return Tuple([as_expr(one) for one in value])
    return const(value)


def get_op(name: str) -> Op:
    """The operator called ``name``, as "nn.conv2d". Raises InputError, with near misses, when there is none."""
    return _core.get_op(name)


def op_names() -> list[str]:
    """The names of all operators.

    >>> "nn.conv2d" in op_names()
    True
    """
    return _core.op_names()


def call(op: str | Expr, *args: Any, **attrs: Any) -> Expr:
    """A call of an operator by name, or of a function, a constructor, a global variable.

    >>> x = var("x", shape=(2, 3))
    >>> print(call("sum", x, axis=[1]), end="")
    free_var %x: Tensor[(2, 3), float32];
    sum(%x, axis=[1])

    Args:
        op: what is called.
        args: arguments, made expressions by `as_expr`.
        attrs: attributes by name; of operators they are checked and completed with their defaults.

    Raises:
        InputError: an unknown operator or attribute, or an attribute of another type.
    """
    callee = get_op(op) if isinstance(op, str) else op
    return _core.Call(callee, [as_expr(one) for one in args], attrs)


class Operator:
    """An operator by name, or a family of them: ``relay.nn.conv2d(x, w, padding=[1, 1])``.

    >>> Operator("nn").relu
    <operator nn.relu>
    """

    def __init__(self, name: str) -> None:
        self._name = name
        if name in _names():
            op = get_op(name)
            attrs = "".join(f"\n    {key}={value!r}" for key, value in op.attrs.items())
            self.__doc__ = (
                f"{op.doc}\n\nArguments: {', '.join(op.args)}\nAttributes and their defaults:{attrs or ' none'}"
            )

    @staticmethod
    def exists(name: str) -> bool:
        """Whether ``name`` is an operator or the beginning of one's name, up to a dot."""
        return name in _names() or any(one.startswith(name + ".") for one in _names())

    @property
    def op(self) -> Op:
        """The operator itself."""
        return get_op(self._name)

    def __call__(self, *args: Any, **attrs: Any) -> Expr:
        """A call of it; see `call`."""
        return call(self._name, *args, **attrs)

    def __getattr__(self, name: str) -> Operator:
        full = f"{self._name}.{name}"
        if name.startswith("_") or not self.exists(full):
            raise AttributeError(f"there is no operator '{full}'")
        return Operator(full)

    def __dir__(self) -> list[str]:
        prefix = self._name + "."
        return [one[len(prefix) :] for one in _names() if one.startswith(prefix)]

    def __repr__(self) -> str:
        return f"<operator {self._name}>"


_all_names: frozenset[str] = frozenset()


def _names() -> frozenset[str]:
    global _all_names
    if not _all_names:
        _all_names = frozenset(_core.op_names())
    return _all_names


def parse(text: str, file_name: str = "text", constants: Sequence[Constant] = (), infer_types: bool = True) -> IRModule:
    """Reads a module in Relay's text format.

    >>> mod = parse("def @main(%x: Tensor[(2), float32]) { add(%x, %x) }")
    >>> str(mod.main.checked_type)
    'fn (Tensor[(2), float32]) -> Tensor[(2), float32]'

    Args:
        text: the module; ``#[version = "0.0.5"]`` may stand before it.
        file_name: for messages.
        constants: what ``meta[relay.Constant][i]`` means, behind the text's own metadata.
        infer_types: whether types are inferred and checked.

    Raises:
        InputError: with every mistake, each with line, column and a caret.
    """
    return IRModule.from_text(text, file_name, list(constants), infer_types)


def parse_expr(text: str, file_name: str = "text", infer_types: bool = False) -> Expr:
    """Reads one expression: statements and a result; ``free_var %x: T;`` declares what is free in it.

    >>> str(parse_expr("free_var %x: bool; (%x, %x)", infer_types=True).checked_type)
    '(bool, bool)'
    """
    return _core.parse_expr(text, file_name, infer_types)


PatternLike = Pattern | Var | None


def _as_pattern(pattern: PatternLike) -> Pattern:
    if pattern is None:
        return Pattern.wildcard()
    return Pattern.variable(pattern) if isinstance(pattern, Var) else pattern


def PatternWildcard() -> Pattern:  # noqa: N802 (named as the node it makes)
    """`_` in a clause of `Match`: matches anything."""
    return Pattern.wildcard()


def PatternVar(var: Var) -> Pattern:  # noqa: N802
    """A variable in a clause of `Match`: matches anything, and binds it."""
    return Pattern.variable(var)


def PatternConstructor(constructor: Constructor, patterns: Sequence[PatternLike] = ()) -> Pattern:  # noqa: N802
    """Data made by a constructor, its fields matching ``patterns`` (None: anything; a variable: itself)."""
    return Pattern.constructor(constructor, [_as_pattern(one) for one in patterns])


def PatternTuple(patterns: Sequence[PatternLike]) -> Pattern:  # noqa: N802
    """A tuple, its fields matching ``patterns`` (None: anything; a variable: itself)."""
    return Pattern.tuple([_as_pattern(one) for one in patterns])
