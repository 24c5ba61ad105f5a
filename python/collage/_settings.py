"""The keyword arguments of `collage.compile`. Generated from src/driver/settings.cc: run tools/settings to write it again."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TypedDict

from collage._setting_types import CheckInputs, Search
from collage.costs import CostEstimator, Estimate
from collage.target import Targets


class Settings(TypedDict, total=False):
    """Settings of a compilation; docs/settings.md describes them, too."""

    shapes: Mapping[str, Sequence[int]] | None
    """Shape of a dynamic input; ? (in Python -1) for a size that stays as it is. None: dynamic sizes stay symbolic."""

    dims: Mapping[str, int | Sequence[int]] | None
    """Size of a dimension in all inputs, or the range of its sizes: runs refuse others. A dimension without a name is
    called ``INPUT[AXIS]``, and so may be one that the model gives a size. None: dynamic sizes stay symbolic, and may be
    any."""

    constants: Mapping[str, str] | None
    """Value of an input that is the same in every run, which is an input no more: a number, numbers separated by
    commas, or a file (.npy, .pb). None: all inputs are given in a run."""

    lengths: Mapping[str, int | Sequence[int]] | None
    """Number of elements of an input that is a sequence: x becomes the inputs x.0, x.1 and so on. 0 leaves an optional
    input out. None: as many elements as `--shape` and `--constant` name."""

    tune_at: Mapping[str, Sequence[int]] | None
    """Sizes of a dynamic dimension. Each combination gets a plan of its own, for which all toolchains are searched; a
    dimension without a name is called ``INPUT[AXIS]``. None: only kernels for any size."""

    threads: int | None
    """Threads that the executable uses. None: all processors that this process may use."""

    toolchains: str | Sequence[str] | None
    """Use only these toolchains. Collage's native kernels always take part. None: those that `collage targets` lists as
    available."""

    target: Targets
    """A toolchain that takes part, with its options: ``llvm -compiler=NAME -option=value``; ``llvm`` is native code.
    ``collage targets`` lists the options. None: toolchains have their default options."""

    accuracy: str | None
    """``exact``: no algorithms that lose accuracy to save work (Winograd, Strassen). ``standard``: allow them. None: as
    targets say, else standard."""

    precision: str | None
    """``any``: also try bfloat16 and float16 versions, if this CPU has them; use with ``max_error``. None: as targets
    say."""

    require: str | Sequence[str] | None
    """Fail unless a kernel of each of these toolchains runs in the model, correctly. None: none."""

    partition_rules: Mapping[str, str] | None
    """Find a toolchain's candidates by this rule, JSON or a file of it, instead of the toolchain's own rules. None:
    each toolchain's own rules."""

    opt_level: int
    """Prepare the model by passes up to this level. 4: also join parallel convolutions and dense layers."""

    required_pass: str | Sequence[str] | None
    """Run these passes at every optimisation level. None: none."""

    disabled_pass: str | Sequence[str] | None
    """Do not run these passes. `collage opt ``--list``` lists all passes and their options. None: none."""

    config: Mapping[str, object] | None
    """Set an option of a pass. None: options have their defaults."""

    partition_for: str | None
    """Do not search: this toolchain gets all operators that it takes, in pieces as large as possible, and native
    kernels the rest. None: search."""

    partitioning: str | os.PathLike[str] | None
    """Do not search: use the partitions in this file, which ``write_partitioning`` wrote. None: search."""

    also: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None
    """Time the partitions in this file, too, as a whole model: the result is never slower than they are. None: none."""

    write_partitioning: str | os.PathLike[str] | None
    """Write the fastest partitions found as JSON, which can be edited and given to ``partitioning``. None: not
    written."""

    write_module: str | os.PathLike[str] | None
    """Write the module of the fastest partitions as Relay text. None: not written."""

    dump: str | os.PathLike[str] | None
    """Write each partition's Relay, MLIR, LLVM IR, assembly, schedule and layouts into this new folder. None: not
    written."""

    explanation: str
    """Keep what ``collage explain`` tells ``inside`` the executable, where no run reads it, in a file, or nowhere
    (``none``)."""

    database: str | os.PathLike[str] | None
    """Tuning database: a file, or ``postgresql://[USER[:PASSWORD]@]HOST[:PORT]/NAME`` to share costs in a team. None:
    $COLLAGE_DATABASE, else ~/.cache/collage/tuning.db."""

    machine: str | None
    """Compile for another machine, whose costs ``collage measure`` brought into the database. Nothing is run here: the
    executable is written without a check. None: this machine."""

    budget: float | str | None
    """Time for the compilation, all models together: 90s, 10m, 1h. Three quarters are for measuring candidates, the
    rest is for timing whole models. 0 measures no candidates and uses known costs. None: no limit."""

    until: float | None
    """Stop measuring once no mix of these candidates can be faster than the best one by more than this: 5%. None: until
    no better mix can be told from the best one."""

    max_measurements: int | None
    """Measure at most this many candidates, all models together. 0 measures nothing and uses known costs. None: no
    limit."""

    candidate_timeout: float | str
    """Give up a candidate that does not answer for this long."""

    candidate_memory: int | str
    """Memory that compiling and running a candidate may take; one that needs more fails. 0: no limit."""

    estimator: str | CostEstimator | Estimate
    """Source of costs: ``measure``, ``database`` (fail if some are missing), ``analytic`` (a formula),
    ``mock=FILE.json`` (a table). Also a name of `collage.register_estimator`, a `collage.CostEstimator`, or a callable
    like its ``estimate``."""

    percentile: int
    """Which percentile of its times is a candidate's cost. Above 50, kernels with varying times cost more."""

    operands: str | None
    """For experiments: where operands are when kernels are timed: ``near`` (the core's caches), ``shared`` (the
    last-level cache) or ``memory``. None: where a run of the model leaves them."""

    runner: str
    """The place that measures candidates: ``local``, or a Ray cluster: ``ray``, ``ray:HOST:PORT``, ``ray://HOST:PORT``.
    Whole models are always timed on this machine."""

    search: str | Search
    """How covers are searched: ``sweep``, ``dijkstra``, ``astar``, ``dp``, ``evolutionary``, or ``exhaustive`` for
    small models. Also a callable that gets a `collage.SearchTask` and returns covers, lists of candidates, the best
    first."""

    covers: int
    """How many of the best partitionings are timed as whole models."""

    optimality_covers: int
    """Small models: if at most this many partitionings exist, time them all and report how far the search was from the
    best. 0: never."""

    tuning_budget: float | str
    """Extra time for trying other loop orders of native kernels, all models together: 30s, 10m, or 200trials. Earlier
    finds are always reused."""

    evolution_budget: float | str
    """Time for the search ``evolutionary``, which times whole models."""

    evolution_population: int
    """Individuals in a generation of the search ``evolutionary``."""

    evolution_seed: int
    """Seed of the random numbers of the search ``evolutionary``."""

    max_error: float | None
    """Reject results that differ from the reference by more than this fraction of the largest output value. None:
    depends on the dtype."""

    check_inputs: CheckInputs | Sequence[CheckInputs] | None
    """Check results on these inputs, too: an .npz file with an array for every input. Also arrays by the names of
    inputs, or a list of such. None: random inputs only."""
