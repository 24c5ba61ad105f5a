"""Types of explanations: what `collage.Executable.explain` and `collage.explanation` return.

docs/explanation.md describes every field; a test compares these types with what is made.
"""

from __future__ import annotations

from typing import Any, TypedDict

from collage.reports import CompileReport

__all__ = [
    "Alternative",
    "Candidate",
    "Configuration",
    "Contender",
    "Conversion",
    "Cost",
    "Cover",
    "ExplainedPartition",
    "Explanation",
    "Gap",
    "Graph",
    "Machine",
    "Memory",
    "Node",
    "Penalties",
    "Phase",
    "Refusal",
    "Rounds",
    "SearchProgress",
    "Switch",
    "Weights",
]


class Weights(TypedDict):
    """The elements of a constant: extremes, mean, standard deviation, share of zeros."""

    minimum: float
    maximum: float
    mean: float
    deviation: float
    zeros: float


class _Node(TypedDict, total=False):
    op: str
    name: str
    attrs: dict[str, str]
    type: list[str]
    inputs: list[int]
    bytes: int
    weights: Weights


class Node(_Node):
    """A node of the dataflow graph; its index is its place in the list."""

    kind: str


class Configuration(TypedDict):
    """A toolchain under its options."""

    name: str
    toolchain: str
    version: str


_Ends = TypedDict("_Ends", {"from": int})


class Switch(_Ends):
    """How much longer a partition takes right after another toolchain's."""

    to: int
    seconds: float


class Penalties(TypedDict):
    """Prices of one more partition."""

    transition_seconds: float
    switches: list[Switch]


_Formats = TypedDict("_Formats", {"from": str})


class _Conversion(_Formats, total=False):
    field: int
    at_least: bool


class Conversion(_Conversion):
    """A change of a value's format."""

    node: int
    seconds: float
    to: str


class _Trial(TypedDict, total=False):
    seconds: float
    reason: str


class Trial(_Trial):
    """A schedule that was tried; one without ``seconds`` failed."""

    schedule: str


class Rates(TypedDict, total=False):
    """How fast the machine is at most, all threads together; what is not known is absent."""

    multiply_adds_per_second: float
    near_bytes_per_second: float
    shared_bytes_per_second: float
    memory_bytes_per_second: float


class _Cost(TypedDict, total=False):
    seconds: float
    p10: float
    p25: float
    p50: float
    p75: float
    p90: float
    half_width: float
    samples: int
    error: float
    schedule: str
    trials: list[Trial]
    reason: str
    least_seconds: float
    multiply_adds: float
    bytes: float


class Cost(_Cost):
    """A cost, which equal candidates share."""

    state: str


class _Candidate(TypedDict, total=False):
    cost: int
    nested: Any


class Candidate(_Candidate):
    """A partition that could be chosen, in one choice of formats."""

    toolchain: int
    rule: str
    nodes: list[int]
    inputs: list[str]
    outputs: list[str]


class Rounds(TypedDict, total=False):
    """Seconds of each run in a play-off."""

    first: list[float]
    final: list[float]


class _Contender(TypedDict, total=False):
    baselines: list[str]
    partitions: list[int]


class Contender(_Contender):
    """A whole mix that took part in the play-off."""

    name: str
    rounds: Rounds


class _Alternative(TypedDict, total=False):
    toolchain: int
    low_seconds: float
    high_seconds: float


class Alternative(_Alternative):
    """Another way to compute some partitions of the winner."""

    scope: str
    candidates: list[int]
    replaces: list[int]
    extra_seconds: float
    own_seconds: float
    replaced_seconds: float
    penalty_seconds: float
    conversions: list[Conversion]
    at_least: bool


class Refusal(TypedDict):
    """Why a toolchain has no way of its own to compute a partition."""

    toolchain: int
    reason: str


class _ExplainedPartition(TypedDict, total=False):
    first_node: str
    kernel: int
    seconds: float
    share: float
    skipped: bool


class ExplainedPartition(_ExplainedPartition):
    """A partition of the winner."""

    candidate: int
    operators: str
    nodes: list[int]
    transition_seconds: float
    switch_seconds: float
    conversion_seconds: float
    conversions: list[Conversion]
    alternatives: list[Alternative]
    refused: list[Refusal]


class Gap(TypedDict):
    """Nodes that a toolchain computes in no candidate."""

    toolchain: int
    kind: str
    reason: str
    nodes: list[int]


class _Cover(TypedDict, total=False):
    unknown: int


class Cover(_Cover):
    """A cover that a search found."""

    name: str
    seconds: float
    partitions: list[int]


class _SearchProgress(TypedDict, total=False):
    best_seconds: float
    least_seconds: float


class SearchProgress(_SearchProgress):
    """How far the searches had come."""

    seconds: float
    measured: int


class _Graph(TypedDict, total=False):
    no_alternatives: str
    rates: Rates


class Graph(_Graph):
    """All that explains one graph."""

    name: str
    hash: str
    winner: str
    nodes: list[Node]
    results: list[int]
    toolchains: list[Configuration]
    penalties: Penalties
    conversions: list[Conversion]
    costs: list[Cost]
    candidates: list[Candidate]
    candidates_left_out: int
    contenders: list[Contender]
    partitions: list[ExplainedPartition]
    best_mix: bool
    refusals: list[Gap]
    covers: list[Cover]
    progress: list[SearchProgress]


class Machine(TypedDict):
    """The machine that costs and times are of."""

    cpu: str
    isa: str
    fingerprint: str
    threads: int
    processors: int
    near_bytes: int
    shared_bytes: int


class _Phase(TypedDict, total=False):
    graph: int


class Phase(_Phase):
    """A phase of the compilation."""

    phase: str
    begin_seconds: float
    end_seconds: float


class _Memory(TypedDict, total=False):
    arena_bytes: int


class Memory(_Memory):
    """Sizes of the executable's parts."""

    file_bytes: int
    weights_bytes: int
    code_bytes: int


class Explanation(TypedDict):
    """The whole tree."""

    format: str
    schema: int
    collage: str
    settings: dict[str, Any]
    machine: Machine
    model: str
    report: CompileReport
    timeline: list[Phase]
    memory: Memory
    graphs: list[Graph]
