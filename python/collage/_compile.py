"""The main job: a model goes in, what runs it fastest on this machine comes out."""

from __future__ import annotations

import math
import os
import re
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from collage import _core
from collage._core import Function, IRModule, SearchTask
from collage._executable import Executable
from collage.costs import CostEstimator, Estimate, as_estimate
from collage.errors import InputError, UnavailableError, UnsupportedError
from collage.frontend import OnnxModel, _as_file, from_onnx
from collage.reports import OperatorTable, SupportReport, ToolchainReport
from collage.target import Targets, as_targets
from collage.toolchain import load_plugins

CheckInputs = Mapping[str, Any] | str | os.PathLike[str]
"""Arrays by the names of inputs, or an .npz file of such."""

Search = Callable[[SearchTask], Sequence[Sequence[int]]]
"""Your own search: returns covers, best first, as lists of candidates."""


@dataclass(frozen=True)
class Progress:
    """Current work of the compiler.

    ``phase`` is "import", "candidates", "search", "play-off" or, of programs, "check"; ``done`` counts measurements in
    the search and rounds in the play-off, ``total`` the play-off's rounds (None if unknown); ``from_database``
    counts known costs.
    """

    phase: str
    done: int = 0
    total: int | None = None
    from_database: int = 0
    what: str = ""


class _Teller:
    """Receives progress from the C++ side."""

    def __init__(self, tell: Callable[[Progress], object]) -> None:
        self._tell = tell
        self._phase = ""

    def phase(self, name: str) -> None:
        self._phase = name
        self._tell(Progress(name))

    def measuring(self, measured: int, from_database: int, what: str) -> None:
        self._tell(Progress(self._phase, measured, None, from_database, what))

    def play_off(self, round_: int, rounds: int, what: str) -> None:
        self._tell(Progress(self._phase, round_, rounds or None, 0, what))

    def warn(self, text: str) -> None:
        warnings.warn(text, stacklevel=2)


class _Printer:
    """Prints each phase, and every few seconds how far it is, to standard error."""

    _PERIOD_SECONDS = 3.0

    def __init__(self) -> None:
        self._phase = ""
        self._printed = 0.0

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        if progress.phase == self._phase and now - self._printed < self._PERIOD_SECONDS:
            return
        self._phase, self._printed = progress.phase, now
        total = "" if progress.total is None else f" of {progress.total}"
        done = f" {progress.done}{total}" if progress.done or total else ""
        print(f"collage: {progress.phase}{done} {progress.what}".rstrip(), file=sys.stderr)


def _seconds(budget: float | str | None, otherwise: float = 0.0) -> float:
    """The seconds of 90, "90s", "10m", "1h", "500ms"; `otherwise` of None."""
    if budget is None:
        return otherwise
    if not isinstance(budget, str):
        if not budget >= 0:
            raise InputError(f"a duration is not below 0, got {budget}")
        return float(budget)
    match = re.fullmatch(r"([0-9]+\.?[0-9]*|\.[0-9]+)(ms|s|m|h)?", budget.strip())
    if match is None:
        raise InputError(f"malformed duration '{budget}'", hint="write 90s, 10m or 1h")
    return float(match[1]) * {"ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}[match[2] or "s"]


def _check_inputs(given: CheckInputs | Sequence[CheckInputs]) -> list[dict[str, Any]]:
    """Arrays by name, read from files where these are given."""
    several = [given] if isinstance(given, (Mapping, str, os.PathLike)) else list(given)
    arrays: list[dict[str, Any]] = []
    for one in several:
        if isinstance(one, Mapping):
            arrays.append({name: np.asarray(value) for name, value in one.items()})
        else:
            with np.load(one) as file:
                arrays.append({name: file[name] for name in file.files})
    return arrays


def _toolchains_of(target: Targets) -> list[str]:
    """The toolchains that targets name. Raises when one cannot be used here."""
    names = []
    for one in as_targets(target):
        if one.device_type != 1:
            raise UnavailableError(
                f"target '{one}' is for {_core.target_kinds()[one.kind]}, which this build cannot use",
                hint="targets of kind llvm run on the processor",
            )
        names.append(one.compiler or "native")
    return list(dict.fromkeys(names))


def _load_model(path: str, report: dict[str, Any]) -> Executable:
    if _core.Bytecode.is_bytecode(path):
        raise UnsupportedError(
            "the model has control flow: it became bytecode",
            hint="use relay.vm.compile, with relay.collage.enable_collage, of what frontend.from_onnx gives",
        )
    return Executable(_core.Model.load(path), report)


def compile(
    model: OnnxModel | IRModule | Function,
    output: str | os.PathLike[str] | None = None,
    *,
    target: Targets = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    threads: int | None = None,
    toolchains: Sequence[str] | None = None,
    accuracy: str | None = None,
    precision: str | None = None,
    require: Sequence[str] | None = None,
    partition_for: str | None = None,
    partitioning: str | os.PathLike[str] | None = None,
    write_partitioning: str | os.PathLike[str] | None = None,
    dump: str | os.PathLike[str] | None = None,
    database: str | os.PathLike[str] | None = None,
    operands: str = "",
    percentile: int = 50,
    estimator: str | CostEstimator | Estimate = "measure",
    search: str | Search = "sweep",
    evolution_budget: float | str = "30m",
    evolution_population: int = 50,
    evolution_seed: int = 64,
    budget: float | str | None = None,
    max_measurements: int = 0,
    tuning_budget: float | str | None = None,
    covers: int = 2,
    optimality_covers: int = 24,
    max_error: float | None = None,
    check_inputs: CheckInputs | Sequence[CheckInputs] = (),
    candidate_timeout: float = 60.0,
    runner: str = "local",
    progress: bool | Callable[[Progress], object] = False,
    should_stop: Callable[[], bool] | None = None,
    _load: Callable[[str, dict[str, Any]], Any] = _load_model,
) -> Executable:
    """Finds the fastest mix of toolchains for a model, and returns what runs it.

    Args:
        model: an ONNX model (path, bytes or ``onnx.ModelProto``), or a module without control flow.
        output: where to write the executable (.clg); None keeps it in memory only.
        target: targets whose toolchains take part, under their options: "llvm -compiler=openvino
            -inference_precision=bf16"; those that are available and default when neither this nor ``toolchains`` is given.
        shapes: shapes of dynamic inputs of an ONNX model, by name.
        threads: threads that a run uses; None for all processors that this process may use.
        toolchains: names of toolchains that take part, beside those of targets; the native one always does.
        accuracy: "exact" or "standard": the option ``accuracy`` of each toolchain that has one; None for what targets say.
        precision: "any" lets toolchains take part again in each lower precision that this processor computes natively,
            or converts where they only keep values so; the report's ``precision_variants`` names them.
        require: toolchains without which to fail.
        partition_for: no search: what this toolchain takes in pieces as large as possible, the rest natively.
        partitioning: no search: the choice in this file, as ``write_partitioning`` wrote it.
        write_partitioning: where to write the winner's choice of partitions, as JSON.
        dump: a new folder for each partition's Relay, MLIR, LLVM IR, assembly, schedule and layouts (docs/debugging.md).
        database: tuning database, a file or "postgresql://…"; None for $COLLAGE_DATABASE, ~/.cache/collage/tuning.db.
        operands: where kernels find their operands when they are timed: "near", "shared", "memory"; "" as in a run.
        percentile: which percentile of a candidate's times is its cost, 1 to 99; above 50 against high variance.
        estimator: where costs are from: "measure", "database", "analytic", "mock=FILE.json" (docs/costs.md), a name of
            `collage.register_estimator`, a `collage.CostEstimator`, or a callable like its ``estimate``. What it
            raises ends the compilation.
        search: how covers are searched: "sweep", "dijkstra", "astar", "dp", "evolutionary", "exhaustive" (docs/search.md),
            or a callable that chooses covers itself: it gets a `collage.SearchTask` and returns lists of candidates, the
            best cover first. Each toolchain's own partitioning enters the play-off beside them.
        evolution_budget: time for "evolutionary", which times its individuals end to end.
        evolution_population: individuals in a generation.
        evolution_seed: where its random numbers start.
        budget: time for measuring candidates: seconds, or "90s", "10m", "1h"; 0 measures nothing, None has no limit.
        max_measurements: at most so many candidates are measured; 0 for no limit.
        tuning_budget: time for trying other schedules of native kernels (docs/costs.md); None tries none. Those known to
            be fastest are used in any case.
        covers: how many of the best mixes enter the play-off.
        optimality_covers: where a model has no more covers than this, all enter the play-off, and the report says by how
            much the search missed the best (``optimality_loss_seconds``); 0 for never.
        max_error: by which share of each result's largest element contestants of the play-off may differ from the reference
            evaluation; None for what their dtypes and rounding to integers give reason for.
        check_inputs: inputs on which the result is checked, beside random ones: an array for every input by name, or an .npz
            file of such; one or several. Those that do not fit the model are refused before anything is searched.
        candidate_timeout: seconds after which a candidate that does not answer is given up.
        runner: where candidates are measured: "local", or a Ray cluster: "ray", "ray:HOST:PORT", "ray://HOST:PORT"
            (docs/costs.md). Play-offs are always on this machine.
        progress: True prints to standard error; a callable gets `Progress`. What it raises ends the compilation.
        should_stop: asked before each measurement; True ends measuring as if the budget were spent.

    Returns:
        The executable; its ``report``, a `collage.reports.CompileReport`, holds all that was found out.

    Raises:
        InputError, UnsupportedError, UnavailableError: by who must act; nothing is left half-written.
    """
    load_plugins()
    options: dict[str, Any] = {
        "num_threads": threads or 0,
        "targets": [] if target is None else [str(one) for one in as_targets(target)],
        "toolchains": list(toolchains or ()),
        "accuracy": accuracy or "",
        "precision": precision or "",
        "require": list(require or ()),
        "partition_for": partition_for or "",
        "operands": operands,
        "percentile": percentile,
        "evolution_seconds": _seconds(evolution_budget),
        "evolution_population": evolution_population,
        "evolution_seed": evolution_seed,
        "budget_seconds": _seconds(budget, otherwise=math.inf),
        "max_measurements": max_measurements,
        "tuning_seconds": _seconds(tuning_budget),
        "num_covers": covers,
        "max_optimality_covers": optimality_covers,
        **({} if max_error is None else {"max_error": float(max_error)}),
        "check_inputs": _check_inputs(check_inputs),
        "candidate_timeout_seconds": float(candidate_timeout),
        "runner": runner,
        "runner_python": sys.executable,
        "shapes": {name: [int(size) for size in sizes] for name, sizes in (shapes or {}).items()},
    }
    if isinstance(search, str):
        options["search"] = search
    else:
        options["search_with"] = search
    estimate = as_estimate(estimator)
    if estimate is None:
        options["estimator"] = estimator
    else:
        options["estimate"] = estimate
    if database is not None:
        options["database"] = os.fspath(database)
    files = {"partitioning": partitioning, "write_partitioning": write_partitioning, "dump": dump}
    for name, path in files.items():
        if path is not None:
            options[name] = os.fspath(path)
    tell = _Printer() if progress is True else progress
    teller = _Teller(tell if callable(tell) else lambda _: None)
    with tempfile.TemporaryDirectory(prefix="collage-") as folder:
        path = os.path.join(folder, "model.clg") if output is None else os.fspath(output)
        options["output"] = path
        if isinstance(model, Function):
            model = IRModule.from_expr(model)
        if isinstance(model, IRModule):
            report = _core.compile_module(model, "module", options, teller, should_stop)
        else:
            with _as_file(model) as file:
                report = _core.compile_file(file, options, teller, should_stop)
        made: Executable = _load(path, report)  # stays mapped when the file goes
        return made


def toolchains() -> list[ToolchainReport]:
    """The toolchains of this build: name, available, version, license, and reason and hint when it is not
    available.

    >>> [row["name"] for row in toolchains() if row["name"] == "native"]
    ['native']
    """
    load_plugins()
    return cast(list[ToolchainReport], _core.toolchains())


def support(
    model: OnnxModel | IRModule | Function,
    toolchains: Sequence[str] | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
) -> SupportReport:
    """Reports which calls of a model each toolchain takes, and why not the others. Nothing is compiled or measured.

    Calls are counted after the passes that begin every compilation.

    Args:
        model: an ONNX model, a module, or a function.
        toolchains: names; None for all, also those that are not available here.
        shapes: shapes of dynamic inputs of an ONNX model, by name.

    Returns:
        ``calls``, their number; ``outside``, the number of others, outside of static straight-line parts; and a row
        for each of ``toolchains``: as `collage.toolchains` gives, ``taken``, and ``operators``, each with ``name``,
        ``calls``, how many it takes ``alone`` and only ``in_patterns``, and ``refused``: reasons with numbers of calls.

    >>> from collage import relay
    >>> x = relay.var("x", shape=(1, 8))
    >>> report = support(relay.Function([x], relay.nn.relu(x)), toolchains=["native"])
    >>> report["calls"], report["toolchains"][0]["taken"]
    (1, 1)
    """
    load_plugins()
    if isinstance(model, Function):
        model = IRModule.from_expr(model)
    if not isinstance(model, IRModule):
        model = from_onnx(model, shape=shapes)
    return cast(SupportReport, _core.support(model, list(toolchains or ())))


def operator_table(
    toolchains: Sequence[str] | None = None,
    operators: Sequence[str] | None = None,
    dtypes: Sequence[str] | None = None,
    calls: int = 1,
    seed: int = 1,
    threads: int = 1,
) -> list[OperatorTable]:
    """Which operators each toolchain takes alone, on which types and in which layouts at its boundary.

    Random calls of every operator are offered to the toolchain; what it takes is compiled, run and compared with the
    reference evaluation.

    Args:
        toolchains: names; None for all.
        operators: names; None for all, which takes minutes.
        dtypes: types of the data; None for all.
        calls: tried for a row, at most, each of other shapes.
        seed: of shapes and values.
        threads: that kernels run on.

    Returns:
        A row for each toolchain: as `collage.toolchains` gives, ``declined``, calls that its predicates took and its
        compiler then declined, and ``rows``, each with ``operator``, ``dtype``, ``layouts``, ``calls`` that were checked,
        ``max_error`` relative to the largest result, and ``failures``, empty where all agree.

    Raises:
        InputError: for a toolchain or operator that there is not.

    >>> table = operator_table(["native"], ["nn.relu"], ["float32"])[0]
    >>> {(row["operator"], row["dtype"], len(row["failures"])) for row in table["rows"]}
    {('nn.relu', 'float32', 0)}
    """
    load_plugins()
    tables = _core.operator_table(
        list(toolchains or ()), list(operators or ()), list(dtypes or ()), calls, seed, threads
    )
    return cast(list[OperatorTable], tables)
