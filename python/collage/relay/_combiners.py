"""Combiners of rule "Combine": how two candidates become one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from collage.relay._rule_functions import RuleFunction, name_of, register_rule


def all_simple(*kinds: str) -> dict[str, Any]:
    """Combines two that touch, of kinds at most these: "A->B" is an anchor followed by what broadcasts."""
    return {"combiner": "AllSimple", "kinds": list(kinds)}


def join_anything() -> dict[str, Any]:
    """Combines any two that touch."""
    return {"combiner": "JoinAnything"}


def tuple_arg() -> dict[str, Any]:
    """Combines what reads a tuple with the tuple and injective makers of its fields."""
    return {"combiner": "TupleArg"}


def tuple_proj() -> dict[str, Any]:
    """Combines a candidate with a projection of its result."""
    return {"combiner": "TupleProj"}


def constant() -> dict[str, Any]:
    """Combines a candidate with all constants that it reads."""
    return {"combiner": "Constant"}


def registered(function: RuleFunction | str, options: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Combines as a function of your own says: it is told all candidates known, and returns unions to add.

    The function is asked again, until it returns nothing new. It takes and returns what that of `Registered` does; in
    the request, candidates from number ``first_new`` on are new to it.
    """
    combiner: dict[str, Any] = {"combiner": "Registered", "function": name_of(function, register_rule)}
    return combiner if options is None else {**combiner, "options": dict(options)}
