"""Partitioning by your own rules and costs, without measuring.

>>> from collage import relay
>>> x = relay.var("x", shape=(1, 4, 8, 8))
>>> w = relay.var("w", shape=(4, 4, 3, 3))
>>> f = relay.Function([x, w], relay.nn.relu(relay.nn.conv2d(x, w)))
>>> fused = Primitive(OnlyValid(Combine(OpCallByKind(), [all_simple("A->B", "B->B")], max_depth=4)))
>>> cover = partition(f, [RuleTarget("acme", fused)], cost=lambda function, target: 1.0)
>>> cover.cost, [part.ops for part in cover.partitions]
(1.0, [['nn.conv2d', 'nn.relu']])

Rules are the objects of ``docs/inspection.md``; `Rule.to_json` gives their JSON, which ``collage candidates`` reads and
a target takes as ``-partition_rule``. Functions that take a rule also take its JSON text.

Predicates, base rules and combiners may be functions of your own, see `register_predicate` and `register_rule`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from collage import _core
from collage._core import DFPattern, Function, IRModule
from collage.relay._combiners import all_simple, constant, join_anything, registered, tuple_arg, tuple_proj
from collage.relay._rule_functions import (
    RuleCandidate,
    RuleFunction,
    RulePredicate,
    RuleRequest,
    name_of,
    register_predicate,
    register_rule,
)
from collage.relay._rule_functions import registered as _registered  # noqa: F401 (asked by the bindings)
from collage.toolchain import load_plugins
from collage.transform import PassContext

__all__ = [
    "Candidate",
    "Combine",
    "Composite",
    "CostEstimator",
    "Cover",
    "FuseOps",
    "HorizontalAnchors",
    "Host",
    "LibraryCalls",
    "MaxCoalesce",
    "Maximal",
    "OnlyValid",
    "OpCallByKind",
    "OpPredicate",
    "PartOfCover",
    "PatternRule",
    "PatternTable",
    "Primitive",
    "Proposed",
    "Registered",
    "Rule",
    "RuleCandidate",
    "RuleRequest",
    "RuleTarget",
    "TrimFreeEnds",
    "Union_",
    "VerticalAnchors",
    "all_simple",
    "candidates",
    "constant",
    "dataflow",
    "join_anything",
    "optimize_for",
    "partition",
    "partition_for",
    "register_predicate",
    "register_rule",
    "registered",
    "rewrite",
    "tuple_arg",
    "tuple_proj",
]


@dataclass(frozen=True)
class Rule:
    """How candidate partitions are found: a kind and its fields. Functions of this module make them."""

    kind: str
    fields: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The rule as plain data."""

        def plain(value: Any) -> Any:
            if isinstance(value, Rule):
                return value.to_dict()
            if isinstance(value, str):
                return value
            return [plain(one) for one in value] if isinstance(value, (list, tuple)) else value

        return {"rule": self.kind, **{key: plain(value) for key, value in self.fields.items() if value is not None}}

    def to_json(self) -> str:
        """The rule as JSON."""
        return json.dumps(self.to_dict())

    @staticmethod
    def from_json(text: str) -> Rule:
        """Reads the text that `to_json` writes. Errors in it are found when the rule is used."""
        fields = json.loads(text)
        return Rule(fields.pop("rule"), fields)


RuleLike = Rule | str


def _json_of(rule: RuleLike) -> str:
    return rule if isinstance(rule, str) else rule.to_json()


def _as_rule(rule: RuleLike) -> Rule:
    return Rule.from_json(rule) if isinstance(rule, str) else rule


def PatternRule(  # noqa: N802 (kinds of rules, as in texts)
    pattern: DFPattern | str, name: str | None = None, predicate: RulePredicate | str | None = None
) -> Rule:
    """Every match of a pattern that satisfies a predicate (rule "DFPattern").

    >>> from collage.relay.dataflow_pattern import is_op, wildcard
    >>> PatternRule(is_op("nn.relu")(wildcard())).to_json()
    '{"rule": "DFPattern", "pattern": "nn.relu(*)"}'

    Args:
        pattern: a pattern, or its text.
        name: of its candidates; else they are called by what they hold.
        predicate: told each match as the typed function that it would be; returns None or "" for a candidate, else why
            it is none. A match of several results is none. Or the name of a registered one.
    """
    named = None if predicate is None else name_of(predicate, register_predicate)
    return Rule("DFPattern", {"name": name, "pattern": str(pattern), "predicate": named})


def Registered(  # noqa: N802
    function: RuleFunction | str,
    sub_rule: RuleLike | None = None,
    options: Mapping[str, Any] | None = None,
    name: str | None = None,
) -> Rule:
    """Candidates that a function of your own finds or, with a sub-rule, makes of its candidates.

    >>> from collage import relay
    >>> x = relay.var("x", shape=(4,))
    >>> f = relay.Function([x], relay.exp(relay.nn.relu(relay.abs(x))))
    >>> def pairs(request):
    ...     return [[call, call.args[0]] for call in request.calls() if isinstance(call.args[0], relay.Call)]
    >>> [one.label for one in candidates(f, Registered(pairs))]
    ['abs+nn.relu', 'nn.relu+exp']

    Args:
        function: takes a `RuleRequest`, returns candidates: `RuleCandidate` objects, or sequences of expressions. Or
            the name of a registered one.
        sub_rule: its candidates are in the request.
        options: plain data that the request passes on.
        name: goes before those of its candidates.
    """
    return Rule(
        "Registered",
        {
            "name": name,
            "function": name_of(function, register_rule),
            "options": None if options is None else dict(options),
            "sub_rule": None if sub_rule is None else _as_rule(sub_rule),
        },
    )


def OpPredicate(attribute: str, name: str | None = None) -> Rule:  # noqa: N802
    """Every operator call that the toolchain NAME of ``attribute`` "target.NAME" takes."""
    return Rule("OpPredicate", {"name": name, "attribute": attribute})


def OpCallByKind(name: str | None = None) -> Rule:  # noqa: N802
    """Every operator call that can be fused."""
    return Rule("OpCallByKind", {"name": name})


def FuseOps(max_calls: int = 256, name: str | None = None) -> Rule:  # noqa: N802
    """The functions that pass FuseOps makes, of two to ``max_calls`` operators, if the toolchain takes them all."""
    return Rule("FuseOps", {"name": name, "max_calls": max_calls})


def Host(name: str | None = None) -> Rule:  # noqa: N802
    """Everything that needs no toolchain."""
    return Rule("Host", {"name": name})


def PatternTable(compiler: str, name: str | None = None) -> Rule:  # noqa: N802
    """A registered toolchain's patterns with their predicates, as Composites."""
    return Rule("PatternTable", {"name": name, "compiler": compiler})


def LibraryCalls(library: str, name: str | None = None) -> Rule:  # noqa: N802
    """The largest matches of a registered toolchain's table of calls, as Composites."""
    return Rule("LibraryCalls", {"name": name, "library": library})


def Composite(name: str, sub_rule: RuleLike) -> Rule:  # noqa: N802
    """Candidates wrapped by a function with attribute Composite ``name``."""
    return Rule("Composite", {"name": name, "sub_rule": _as_rule(sub_rule)})


def Primitive(sub_rule: RuleLike, name: str | None = None) -> Rule:  # noqa: N802
    """Candidates wrapped by a function with Primitive, and Compiler for an external target."""
    return Rule("Primitive", {"name": name, "sub_rule": _as_rule(sub_rule)})


def Union_(sub_rules: Sequence[RuleLike], name: str | None = None) -> Rule:  # noqa: N802
    """Candidates of all the rules (rule "Union")."""
    return Rule("Union", {"name": name, "sub_rules": [_as_rule(one) for one in sub_rules]})


def OnlyValid(  # noqa: N802
    sub_rule: RuleLike,
    max_exits: int = 1,
    allow_taps: bool = False,
    max_depth: int = 0,
    name: str | None = None,
) -> Rule:
    """Those that are valid: at most so many exits and so deep (0: no limit), with or without taps."""
    config = {"max_exits": max_exits, "allow_taps": allow_taps, "max_depth": max_depth}
    return Rule("OnlyValid", {"name": name, "config": config, "sub_rule": _as_rule(sub_rule)})


def Combine(  # noqa: N802
    sub_rule: RuleLike, combiner_rules: Sequence[Mapping[str, Any]], max_depth: int = 0, name: str | None = None
) -> Rule:
    """Every way of combining candidates by combiners (`all_simple` and its like), the candidates too."""
    combiners = [dict(one) for one in combiner_rules]
    return Rule(
        "Combine",
        {"name": name, "sub_rule": _as_rule(sub_rule), "combiner_rules": combiners, "max_depth": max_depth},
    )


def MaxCoalesce(sub_rule: RuleLike, config: Mapping[str, Any] | None = None, name: str | None = None) -> Rule:  # noqa: N802
    """Disjoint candidates, the largest first, merged where they touch."""
    return Rule(
        "MaxCoalesce",
        {"name": name, "sub_rule": _as_rule(sub_rule), "config": None if config is None else dict(config)},
    )


def VerticalAnchors(  # noqa: N802
    sub_rule: RuleLike, anchor: str | None = None, max_anchors: int = 2, name: str | None = None
) -> Rule:
    """Unions of touching candidates that hold anchors: calls of operator ``anchor``, or of kind A."""
    return Rule(
        "VerticalAnchors",
        {"name": name, "sub_rule": _as_rule(sub_rule), "anchor": anchor, "max_anchors": max_anchors},
    )


def HorizontalAnchors(  # noqa: N802
    sub_rule: RuleLike, anchor: str | None = None, max_anchors: int = 3, name: str | None = None
) -> Rule:
    """Unions of candidates whose anchors call the same operator alike and read the same value."""
    return Rule(
        "HorizontalAnchors",
        {"name": name, "sub_rule": _as_rule(sub_rule), "anchor": anchor, "max_anchors": max_anchors},
    )


def Maximal(sub_rule: RuleLike, name: str | None = None) -> Rule:  # noqa: N802
    """Candidates, and the largest regions that they cover together."""
    return Rule("Maximal", {"name": name, "sub_rule": _as_rule(sub_rule)})


def Proposed(sub_rule: RuleLike, name: str | None = None) -> Rule:  # noqa: N802
    """Candidates, and the partitions that the toolchain's own partitioner makes of the graph, where it has one."""
    return Rule("Proposed", {"name": name, "sub_rule": _as_rule(sub_rule)})


def TrimFreeEnds(sub_rule: RuleLike, name: str | None = None) -> Rule:  # noqa: N802
    """Candidates without reshapes, tuples and projections at their ends."""
    return Rule("TrimFreeEnds", {"name": name, "sub_rule": _as_rule(sub_rule)})


def _function_of(program: IRModule | Function) -> Function:
    return program.main if isinstance(program, IRModule) else program


@dataclass(frozen=True)
class Candidate:
    """A candidate of a rule: ``inside`` are nodes by post-dfs index, ``kind`` is the greatest fusion kind inside."""

    inside: list[int]
    rule_name: str
    label: str
    kind: str
    depth: int


def candidates(program: IRModule | Function, rule: RuleLike) -> list[Candidate]:
    """Returns the candidates of a rule in a function, or in ``main`` of a module, each set of nodes once."""
    return [Candidate(**row) for row in _core.inspect_candidates(_function_of(program), _json_of(rule))]


def rewrite(program: IRModule | Function, rule: RuleLike, target: str = "inspected") -> Function:
    """The function with all candidates of a rule applied, which must not overlap.

    Args:
        program: a function, or a module whose ``main`` is meant.
        rule: with a Composite or Primitive in it, else nothing changes.
        target: the candidates' toolchain: "NAME", or "NAME:external" for one with a Compiler attribute.
    """
    return _core.rewrite_by_rule(_function_of(program), _json_of(rule), target)


def dataflow(program: IRModule | Function) -> list[dict[str, Any]]:
    """The nodes of a function's dataflow graph by post-dfs index, as ``collage dataflow --json`` prints them."""
    return _core.inspect_dataflow(_function_of(program))


class CostEstimator(Protocol):
    """Source of candidates' costs; may be a function of the same arguments."""

    def __call__(self, function: Function, target: str) -> float:
        """Returns seconds, or your own unit, not negative; infinity: cannot be run, NaN: unknown."""


@dataclass(frozen=True)
class RuleTarget:
    """A target by name, and the rule by which its candidates are found; ``external`` ones get a Compiler attribute."""

    name: str
    rule: RuleLike
    external: bool = True


@dataclass(frozen=True)
class PartOfCover:
    """A chosen candidate: its target, the nodes and operators inside, its cost."""

    target: str
    rule_name: str
    inside: list[int]
    ops: list[str]
    cost: float


@dataclass(frozen=True)
class Cover:
    """The least-cost choice of partitions.

    ``next_best_cost`` is the second least total over covers, None if there is one cover only. ``host`` are the nodes left
    to the host, ``searched`` counts of states, candidates and costs that were asked for, ``function`` what comes out.
    ``certificate`` says whether the search cut nothing off (``exact``), how many states it dropped, and the proven
    ``least_cost`` of any cover of the candidates.
    """

    cost: float
    next_best_cost: float | None
    partitions: list[PartOfCover]
    host: list[int]
    searched: dict[str, int]
    certificate: dict[str, bool | int | float]
    function: Function


def partition(
    program: IRModule | Function,
    targets: Sequence[RuleTarget],
    cost: CostEstimator | Mapping[str, Any] | None = None,
    transition_penalty: float = 0.0,
    coalesce: bool = False,
) -> Cover:
    """The least-cost cover of a function by targets with rules.

    Args:
        program: a function, or a module whose ``main`` is meant.
        targets: in the order that breaks ties; the host joins as the last one, at no cost.
        cost: a callable, asked once per candidate when the search needs it, with the candidate as a typed function and
            the target's name; or the formula of ``docs/inspection.md`` as a dict; None: 1 for each operator call.
        transition_penalty: added once per chosen candidate that is not the host's.
        coalesce: whether chosen partitions of one target that touch are merged afterwards.

    Raises:
        UnsupportedError: nothing covers the function; names nodes and why each target declines.
        InputError: malformed rules, a negative cost.
    """
    rows = [{"name": one.name, "external": one.external, "rule": json.loads(_json_of(one.rule))} for one in targets]
    formula: dict[str, Any] = {}
    if transition_penalty:
        formula["transition_penalty"] = transition_penalty
    if coalesce:
        formula["coalesce"] = True
    estimate: Callable[[Function, str], float] | None = None
    if isinstance(cost, Mapping):
        formula = {**cost, **formula}
    elif cost is not None:
        estimate = cost
    found = _core.partition_by_costs(_function_of(program), json.dumps(rows), json.dumps(formula), estimate)
    del found["schema"]
    parts = [PartOfCover(**row) for row in found.pop("partitions")]
    return Cover(partitions=parts, **found)


def _known_toolchains() -> list[str]:
    load_plugins()
    return _core.toolchain_names()


def optimize_for(mod: IRModule, toolchain: str) -> IRModule:
    """The module in the form that a toolchain's patterns are written for: the RFC's ``optimize_for_<toolchain>``.

    The passes that prepare a model in `collage.compile` run, then the toolchain's preamble, under the current
    `PassContext`. Passes of a preamble run at every level unless they are disabled.

    Args:
        mod: a module.
        toolchain: the name of a registered one, see `collage.toolchains`.

    Raises:
        InputError: there is no such toolchain, or its preamble names a pass that there is not.
    """
    load_plugins()
    return _core.optimize_for(toolchain, mod, PassContext.current()._of_compilation())


def partition_for(mod: IRModule, toolchain: str) -> IRModule:
    """The module with all that a toolchain takes, in regions as large as it takes, as global functions for it.

    Costs are not asked for: this is the RFC's ``partition_for_<toolchain>``. `relay.vm.compile` compiles the result.
    ``partition_for_NAME(mod)`` and ``optimize_for_NAME(mod)`` are the same for the toolchain NAME.

    >>> from collage import relay
    >>> x, w = relay.var("x", shape=(2, 4)), relay.var("w", shape=(3, 4))
    >>> mod = IRModule.from_expr(relay.nn.relu(relay.nn.dense(x, w)))
    >>> [one.attrs.get("Compiler") for one in relay.collage.partition_for_xnnpack(mod).functions.values()]
    ['xnnpack', None]

    Args:
        mod: a module; `optimize_for` is applied to it first.
        toolchain: the name of a registered one, see `collage.toolchains`.

    Raises:
        InputError: there is no such toolchain, or its preamble names a pass that there is not.
    """
    load_plugins()
    return _core.partition_for(toolchain, mod, PassContext.current()._of_compilation())


_FOR_ONE = {"optimize_for_": optimize_for, "partition_for_": partition_for}


def _for_one(name: str, of_any: Callable[[IRModule, str], IRModule], toolchain: str) -> Callable[[IRModule], IRModule]:
    """``of_any`` for one toolchain, as a function called ``name``."""

    def of_one(mod: IRModule) -> IRModule:
        return of_any(mod, toolchain)

    of_one.__name__ = of_one.__qualname__ = name
    of_one.__doc__ = f"The same as ``{of_any.__name__}(mod, {toolchain!r})``."
    return of_one


def __getattr__(name: str) -> Callable[[IRModule], IRModule]:
    """``partition_for_NAME`` and ``optimize_for_NAME`` for every registered toolchain."""
    problem = f"module 'collage.relay.collage' has no attribute '{name}'"
    for prefix, of_any in _FOR_ONE.items():
        if not name.startswith(prefix):
            continue
        toolchain, known = name.removeprefix(prefix), _known_toolchains()
        if toolchain in known:
            return _for_one(name, of_any, toolchain)
        problem += f": there is no toolchain '{toolchain}', there are {', '.join(known)}"
    raise AttributeError(problem)


def __dir__() -> list[str]:
    return [*__all__, *(prefix + name for prefix in _FOR_ONE for name in _known_toolchains())]
