"""Types of reports: dictionaries with the keys of ``--json``.

Each report is made once, in C++ (``src/report``); tests compare these types with what is made.
"""

from __future__ import annotations

from typing import Any, TypedDict

__all__ = [
    "ArenaReport",
    "ArenaValue",
    "BoundedMix",
    "CompileReport",
    "ContenderReport",
    "CounterReport",
    "EvaluatedOperator",
    "FailureReport",
    "IncompatibleToolchain",
    "MemoryReport",
    "OperatorRow",
    "OperatorSupport",
    "OperatorTable",
    "ParticipantReport",
    "PartitionAlternative",
    "PartitionChoice",
    "ProfileReport",
    "RefusedCalls",
    "RefusedPartition",
    "RoofReport",
    "RunSeconds",
    "SearchCounts",
    "Seconds",
    "StepReport",
    "SupportReport",
    "TimelineSpan",
    "ToolchainOption",
    "ToolchainPart",
    "ToolchainReport",
    "ToolchainSupport",
    "TuningReport",
    "VerifiedReport",
]


class ToolchainOption(TypedDict):
    """An option that targets may give a toolchain."""

    name: str
    type: str
    default: str
    meaning: str


class IncompatibleToolchain(TypedDict):
    """A toolchain that is never in the same executable."""

    toolchain: str
    reason: str


class ToolchainReport(TypedDict):
    """A toolchain of this build; ``reason`` and ``hint`` where it is not available."""

    name: str
    available: bool
    version: str
    default: bool
    reason: str
    hint: str
    license: str
    hooks: list[str]
    options: list[ToolchainOption]
    incompatible: list[IncompatibleToolchain]


class RefusedCalls(TypedDict):
    """Calls that a toolchain does not take for one reason; ``example`` is where the first of them stands."""

    calls: int
    reason: str
    pattern: str
    example: str


class OperatorSupport(TypedDict):
    """The calls of one operator that a toolchain takes; ``patterns`` counts the calls that each row of its table holds."""

    name: str
    calls: int
    alone: int
    in_patterns: int
    patterns: dict[str, int]
    refused: list[RefusedCalls]


class ToolchainSupport(ToolchainReport):
    """A toolchain, and what it takes of a model."""

    taken: int
    operators: list[OperatorSupport]


class SupportReport(TypedDict):
    """The result of `collage.support`."""

    schema: int
    model: str
    calls: int
    toolchains: list[ToolchainSupport]
    outside: int


class OperatorRow(TypedDict):
    """One operator on one dtype in one choice of layouts; no ``failures`` where all calls agree with the reference."""

    operator: str
    dtype: str
    layouts: str
    calls: int
    max_error: float
    failures: list[str]


class OperatorTable(ToolchainReport):
    """A toolchain, and the operators that it takes alone."""

    rows: list[OperatorRow]
    declined: int


class ParticipantReport(ToolchainReport):
    """A toolchain, and whether and as what it took part in a compilation."""

    takes_part: bool
    takes_part_as: list[str]


class SearchCounts(TypedDict):
    """Counts of the search: candidates, with layouts (``variants``), different ones, and where their costs are from."""

    candidates: int
    variants: int
    states: int
    distinct: int
    measured: int
    remeasured: int
    from_database: int
    failed: int
    below_bound: int
    checkpoints: int
    stopped: bool
    budget_spent: bool


class FailureReport(TypedDict):
    """Candidates that failed in the same way."""

    kind: str
    count: int
    example: str


class TuningReport(TypedDict):
    """Results of the search for schedules; ``gain`` is a share of the time of all partitions."""

    partitions: int
    faster: int
    trials: int
    known_trials: int
    seconds: float
    gain: float
    budget_spent: bool
    trials_per_minute: float


class Certificate(TypedDict):
    """A bound on the gain of a perfect search: no cover of the candidates is faster by more than ``gap``, by the sums of costs."""

    exact: bool
    gap: float
    cover_seconds: float
    least_seconds: float
    dropped: int
    capped: list[str]


class PartitionAlternative(TypedDict):
    """Another way to compute a partition's nodes; ``at_least``: something in it was never measured."""

    partitions: dict[str, int]
    extra_seconds: float
    at_least: bool


class RefusedPartition(TypedDict):
    """A toolchain that has no other way to compute a partition's nodes."""

    toolchain: str
    reason: str


class PartitionChoice(TypedDict):
    """A partition of the best mix, and what else could have computed its nodes; ``share`` is of the mix's cost."""

    operators: str
    calls: int
    first_node: str
    toolchain: str
    seconds: float
    share: float
    alternatives: list[PartitionAlternative]
    refused: list[RefusedPartition]


class BoundedMix(TypedDict):
    """How much of the best mix may be computed in a lower precision. Errors are shares of each result's largest element."""

    allowed: float
    best_error: float
    best_partitions: int
    error: float
    partitions: int
    built: int
    seconds: float


class ContenderReport(TypedDict):
    """A contender of the play-off; ``spread_seconds`` is its 90th percentile minus its median."""

    name: str
    words: str
    single: bool
    extra: bool
    estimated_seconds: float
    p50_seconds: float
    spread_seconds: float
    to_winner: float | None
    p90_seconds: float
    min_seconds: float
    samples: int
    relative: float
    first_relative: float
    is_finalist: bool
    max_error: float
    partitions: dict[str, int]
    failure: str


class VerifiedReport(TypedDict):
    """How far results are from the reference evaluation; ``sizes`` of the inputs that a program was run at."""

    sizes: list[str]
    max_error: float | None
    not_verified: str


class ToolchainPart(TypedDict):
    """The part of a toolchain in a program with dynamic shapes, and why it has none."""

    toolchain: str
    any_size_kernels: int
    not_at_any_size: str
    plan_partitions: int
    not_in_plans: str


class EvaluatedOperator(TypedDict):
    """Calls of one operator in a program that run by reference evaluation, which is slow."""

    operator: str
    count: int
    first_node: str
    reason: str
    product: bool


Seconds = TypedDict(
    "Seconds",
    {
        "import": float,
        "search": float,
        "play_off": float,
        "total": float,
        "build": float,
        "check": float,
        "timing": float,
        "write": float,
    },
)
"""Parts of a compilation's time; the last four are parts of the play-off."""


class CompileReport(TypedDict):
    """The results of a compilation: the ``report`` of a `collage.Executable`."""

    schema: int
    verdict: str
    model: str
    operators: int
    parameters: int
    machine: str
    threads: int
    toolchains: list[ParticipantReport]
    precision_variants: list[str]
    no_precision_variants: str
    search: SearchCounts
    failures: list[FailureReport]
    certificate: Certificate | None
    choices: list[PartitionChoice]
    tuning: TuningReport
    bounded_mix: BoundedMix | None
    play_off: list[ContenderReport]
    regions: list[Any]  # of CompileReport
    searched_sizes: list[str]
    winner: str
    p50_seconds: float | None
    estimated_seconds: float | None
    spread_seconds: float | None
    partitions: dict[str, int]
    best_baseline: str
    apparent_loss_seconds: dict[str, float]
    additive_error_seconds: float
    optimality_loss_seconds: float | None
    optimality_loss_unknown: str
    covers: int
    verified: VerifiedReport
    parts: list[ToolchainPart]
    reference_evaluation: list[EvaluatedOperator]
    output: str
    output_bytes: int
    seconds: Seconds


class RunSeconds(TypedDict):
    """Percentiles over runs."""

    p10: float
    p50: float
    p90: float


class StepReport(TypedDict):
    """A step of a run: a kernel, a change of layout, an operator that is evaluated. Times are of all its calls in a run."""

    step: int
    kind: str
    plan: str
    plan_step: int | None
    partition: int | None
    toolchain: str
    operators: str
    nodes: list[str]
    calls: int
    p10_seconds: float
    p50_seconds: float
    p90_seconds: float
    share: float
    cumulative_share: float
    first_seconds: float | None
    cold_seconds: float | None
    estimated_seconds: float | None
    flops: int | None
    bytes: int | None
    weight_bytes: int | None
    flops_per_second: float | None
    bytes_per_second: float | None
    roof_seconds: float | None
    roof_share: float | None
    bound: str
    counters: dict[str, float]
    thread_seconds: list[float]


class CounterReport(TypedDict):
    """A counter of the processor or the system; ``reason`` where it is not available."""

    name: str
    available: bool
    reason: str
    per_run: float | None


class MemoryReport(TypedDict):
    """Bytes of the process, and of the executable."""

    peak_bytes: int | None
    resident_bytes: int | None
    arena_bytes: int
    weight_bytes: int
    code_bytes: int


class ArenaValue(TypedDict):
    """A value, or a kernel's workspace, in an arena; steps are those of the plan."""

    value: int | None
    offset: int
    bytes: int
    first_step: int
    last_step: int
    type: str


class ArenaReport(TypedDict):
    """The working memory of a plan; ``used_bytes`` is the most that lives in it at one step."""

    plan: str
    memory: str
    bytes: int
    used_bytes: int
    values: list[ArenaValue]


class RoofReport(TypedDict):
    """Rates that this machine reaches at most."""

    flops_per_second: float
    near_bytes_per_second: float
    shared_bytes_per_second: float
    memory_bytes_per_second: float


class TimelineSpan(TypedDict):
    """A step on thread 0, or a thread's share of a parallel region in it; ``step`` is the number of one of ``steps``."""

    thread: int
    step: int
    region: bool
    begin_seconds: float
    end_seconds: float


class ProfileReport(TypedDict):
    """Where the time of runs goes: the result of `collage.Executable.profile`."""

    schema: int
    executable: str
    machine: str
    threads: int
    seconds: RunSeconds
    runs: int
    first_run_seconds: float
    cold_seconds: float | None
    load_seconds: float | None
    timed_seconds: RunSeconds
    overhead: float
    between_steps_seconds: float
    estimated_seconds: float | None
    roof: RoofReport | None
    memory: MemoryReport
    arenas: list[ArenaReport]
    counters: list[CounterReport]
    steps: list[StepReport]
    timeline: list[TimelineSpan]
