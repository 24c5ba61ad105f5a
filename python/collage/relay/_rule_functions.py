"""Functions of rules: predicates, base rules and combiners in Python, known to rules by names."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from collage import _core
from collage._core import Call, Expr, Function, Op


@dataclass(frozen=True)
class RuleCandidate:
    """A sub-graph that may become a partition.

    Attributes:
        inside: calls, tuples and projections of the function, in any order.
        name: shown where candidates are; empty: its operators.
        made_of: numbers of the candidates of the request that it is made of: their Composites stay around their part.
    """

    inside: Sequence[Expr]
    name: str = ""
    made_of: Sequence[int] = ()


@dataclass(frozen=True)
class RuleRequest:
    """A request for the candidates of a rule.

    Attributes:
        function: typed dataflow; the expressions of candidates are nodes of it.
        toolchain: the name of the toolchain that is to compute the candidates.
        options: those of the rule.
        candidates: those of a sub-rule; for a combiner all that are known; else none.
        first_new: for a combiner, the number of the first candidate that it has not been told before.
    """

    function: Function
    toolchain: str
    options: dict[str, Any]
    candidates: Sequence[RuleCandidate] = ()
    first_new: int = 0

    def calls(self) -> list[Call]:
        """The calls of operators in the function, operands first."""
        return [one for one in self.function.post_order() if isinstance(one, Call) and isinstance(one.op, Op)]


RulePredicate = Callable[[Function], str | None]
RuleFunction = Callable[[RuleRequest], Iterable[RuleCandidate | Sequence[Expr]]]

registered: dict[str, Callable[..., Any]] = {}
"""Functions by the names that rules as text refer to, at any time: entries stay."""

_names: dict[tuple[Callable[..., Any], str], str] = {}
"""The registered names of functions that rules were given without one."""


def register_predicate(name: str, predicate: RulePredicate) -> None:
    """Makes a predicate known to rules as ``name``: field "predicate" of a rule "DFPattern".

    Args:
        name: not taken yet.
        predicate: told a match as the typed function that it would be; returns None or "" for a candidate, else why it
            is none.

    Raises:
        InputError: the name is taken.
    """
    _core.register_predicate(name)
    registered[name] = predicate


def register_rule(name: str, find: RuleFunction) -> None:
    """Makes a function known to rules and combiners as ``name``: field "function" of those called "Registered".

    It must return the same for the same request. Candidates that cannot be run in one go are left out.

    Args:
        name: not taken yet.
        find: takes a `RuleRequest`; returns candidates, `RuleCandidate` objects or sequences of expressions.

    Raises:
        InputError: the name is taken.
    """

    def ask(
        function: Function, toolchain: str, options: str, known: list[tuple[list[Expr], str]], first_new: int
    ) -> list[tuple[list[Expr], str, list[int]]]:
        told = [RuleCandidate(inside, called) for inside, called in known]
        request = RuleRequest(function, toolchain, json.loads(options), told, first_new)
        answers = [one if isinstance(one, RuleCandidate) else RuleCandidate(one) for one in find(request)]
        return [(list(one.inside), one.name, list(one.made_of)) for one in answers]

    _core.register_rule(name)
    registered[name] = ask


def name_of(function: Callable[..., Any] | str, register: Callable[[str, Any], None]) -> str:
    """The name of a function, which is registered first unless it has been."""
    if isinstance(function, str):
        return function
    key = function, register.__name__
    if key not in _names:
        wanted = f"python.{getattr(function, '__qualname__', type(function).__qualname__)}"
        name = wanted
        while name in registered:
            name = f"{wanted}.{len(registered)}"
        register(name, function)
        _names[key] = name
    return _names[key]
