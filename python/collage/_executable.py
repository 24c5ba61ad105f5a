"""Compiled models, as Python uses them."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from collage import _core
from collage._core import Instance
from collage.errors import InputError, UnsupportedError
from collage.explanations import Explanation
from collage.reports import CompileReport, ProfileReport


@dataclass(frozen=True)
class Port:
    """An input or an output: its name, shape and dtype.

    Sizes that only a run knows are -1 in the shape; ``dimension_names`` says what the model calls them.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    dimension_names: tuple[str, ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class Partition:
    """A piece of the model that runs as one kernel.

    ``operators`` are joined by '+', ``nodes`` are the model's names of what is inside.
    """

    toolchain: str
    operators: str
    nodes: list[str]
    estimated_seconds: float


def _ports(rows: list[Any]) -> list[Port]:
    return [Port(row["name"], tuple(row["shape"]), row["dtype"], tuple(row.get("dimension_names", ()))) for row in rows]


def _with_elements(given: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """The values of inputs, those of a list for the sequence x as ``x.0``, ``x.1``, …"""
    values: dict[str, Any] = {}
    for name, value in given.items():
        if isinstance(value, (list, tuple)) and name not in names and f"{name}.0" in names:
            values.update({f"{name}.{i}": element for i, element in enumerate(value)})
        else:
            values[name] = value
    return values


def _load_file(path: str | os.PathLike[str]) -> _core.Model | _core.Program:
    return _core.Program.load(path) if _core.Bytecode.is_bytecode(path) else _core.Model.load(path)


class Executable:
    """A compiled model. Call it with arrays, by position or by name:

        exe = collage.load("model.clg")
        scores = exe(image)

    Takes NumPy arrays, torch tensors and other objects with DLPack. Memory that is aligned to 64 bytes (torch's, and that
    of `collage.empty`) is read in place, other memory is copied. Results are NumPy arrays with memory of their own. May be
    called from several threads at once: each call runs on an instance of its own, and Python's interpreter lock is
    released meanwhile.
    """

    def __init__(self, model: _core.Model | _core.Program, report: dict[str, Any] | None = None) -> None:
        self._model = model
        self.report = cast(CompileReport | None, report)
        """The report of its compilation, as ``collage compile --json`` prints it; None for a file that was loaded."""
        self.inputs: list[Port] = _ports(model.inputs())
        """Inputs in their order."""
        self.outputs: list[Port] = _ports(model.outputs())
        """Outputs in their order."""

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Executable:
        """Maps a file that was compiled. Raises InputError, CorruptError, or UnavailableError (another processor)."""
        return Executable(_load_file(path))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the file, whole or not at all."""
        self._model.save(path)

    @staticmethod
    def verify(path: str | os.PathLike[str]) -> None:
        """Reads the whole file and checks all checksums; raises CorruptError."""
        if _core.Bytecode.is_bytecode(path):
            _core.Program.load(path)  # which checks all
        else:
            _core.verify(path)

    @property
    def partitions(self) -> list[Partition]:
        """Which nodes of the model run where, in the order of their kernels."""
        return [
            Partition(row["toolchain"], row["operators"], row["nodes"], row["estimated_seconds"])
            for row in self._model.partitions()
        ]

    @property
    def num_threads(self) -> int:
        """How many threads a run uses."""
        return self._model.num_threads

    @property
    def metadata(self) -> dict[str, Any]:
        """From which model, on which machine it was made."""
        found: dict[str, Any] = json.loads(self._model.metadata_json)
        return found

    def explain(self) -> Explanation:
        """Why it is made as it is: what was chosen, from which candidates, at which costs. ``collage explain`` shows it.

        Raises:
            InputError: it was compiled with ``explanation="none"``, or with a file, which `collage.explanation` reads.
            CorruptError: the explanation is damaged.
        """
        return cast(Explanation, json.loads(self._explanation_text()))

    def _explanation_text(self) -> str:
        text = self._model.explanation_json()
        if text is None:
            raise InputError(
                "the executable has no explanation",
                hint="compile without explanation='none', or give collage.explanation the file that it was written to",
            )
        return text

    def report_html(
        self,
        path: str | os.PathLike[str],
        *,
        profile: Mapping[str, Any] | None = None,
        compare: Executable | None = None,
    ) -> None:
        """Writes the explanation as one HTML file to look at: graph, times, alternatives. ``collage report`` does it, too.

        Args:
            path: the file; it needs nothing else, no network either.
            profile: of real runs, whose times and threads are shown, too.
            compare: an executable of the same model; what it computes otherwise is listed.

        Raises:
            InputError: there is no explanation (see `explain`), or ``profile`` is none.
            ResourceError: the file cannot be written.
        """
        other = None if compare is None else compare._explanation_text()
        _core.write_html_report(path, self._explanation_text(), None if profile is None else json.dumps(profile), other)

    def _in_order(self, args: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
        names = [port.name for port in self.inputs]
        tensors: list[Any] = []
        for arg in args:
            begins_sequence = len(tensors) < len(names) and names[len(tensors)].endswith(".0")
            tensors += arg if begins_sequence and isinstance(arg, (list, tuple)) else [arg]
        if len(tensors) > len(names):
            raise InputError(f"the model has {len(names)} inputs, got {len(tensors)}")
        values = dict(zip(names, tensors))
        for name, value in _with_elements(named, names).items():
            if name not in names:
                raise InputError(f"there is no input '{name}'", hint=f"there are: {', '.join(names)}")
            if name in values:
                raise InputError(f"input '{name}' is given twice")
            values[name] = value
        missing = [name for name in names if name not in values]
        if missing:
            raise InputError(f"no value for input{'s' * (len(missing) > 1)} {', '.join(map(repr, missing))}")
        return [values[name] for name in names]

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Runs once. Returns the output's array, or a tuple of them when there are several.

        Args:
            args: arrays in the order of the inputs; a list for an input of the model that is a sequence.
            named: arrays by the inputs' names; a list for a sequence.

        Raises:
            InputError: an input is missing, unknown, or of another shape or dtype.
        """
        results = self._model.run(self._in_order(args, named))
        return results[0] if len(results) == 1 else tuple(results)

    def run(self, inputs: Mapping[str, Any] | Sequence[Any]) -> dict[str, npt.NDArray[Any]]:
        """Runs once on arrays by name or in order; returns the outputs by name. For names that are no identifiers."""
        values = self._in_order((), inputs) if isinstance(inputs, Mapping) else self._in_order(inputs, {})
        return dict(zip([port.name for port in self.outputs], self._model.run(values)))

    def instance(self) -> Instance:
        """One execution with memory of its own, for callers that bind arrays once and run often.

        Raises UnsupportedError for a model with control flow or dynamic shapes.
        """
        if isinstance(self._model, _core.Program):
            raise UnsupportedError("the shapes of this model's results are known in a run only", hint="call it")
        return Instance(self._model)

    def benchmark(self, seconds: float = 1.0, inputs: Sequence[Any] | None = None) -> list[float]:
        """Times runs with inputs bound, one after the other.

        Args:
            seconds: how long to go on; at least five runs are made.
            inputs: arrays in the order of the inputs; random ones when there are none.

        Returns:
            Seconds of each run, the first (which warms up) left out.
        """
        random = np.random.default_rng(0)
        values = [random_input(port, random) for port in self.inputs] if inputs is None else list(inputs)
        run = self._bound(values)
        run()
        samples: list[float] = []
        began = time.perf_counter()
        while len(samples) < 5 or time.perf_counter() - began < seconds:
            start = time.perf_counter()
            run()
            samples.append(time.perf_counter() - start)
        return samples

    def profile(
        self,
        inputs: Mapping[str, Any] | Sequence[Any] | None = None,
        *,
        sizes: Mapping[str, int] | None = None,
        seconds: float = 3.0,
        counters: bool = True,
        cold: bool = True,
        roof: bool = True,
    ) -> ProfileReport:
        """Times every partition inside of real runs, as ``collage profile`` does, on an instance of its own.

        Args:
            inputs: arrays by name or in the order of the inputs; random ones when there are none.
            sizes: sizes of dynamic dimensions by their names, for random inputs.
            seconds: how long to run, approximately.
            counters: read counters of the processor and the system, in runs of their own.
            cold: also run with evicted caches.
            roof: measure what the machine can do at most, which bounds each partition's time.

        Returns:
            The report: ``steps`` with times in seconds, ``timeline``, ``memory``, ``arenas``; its page is docs/profile.md.

        Raises:
            InputError: inputs do not fit, or a size is not known.
        """
        values: list[Any] = []
        if inputs is not None:
            values = self._in_order((), inputs) if isinstance(inputs, Mapping) else self._in_order(inputs, {})
        if isinstance(self._model, _core.Program):
            report = self._model.profile(values, dict(sizes or {}), seconds, counters, cold, roof)
        elif sizes:
            raise InputError("this model's inputs have no dynamic dimensions", hint="leave out sizes")
        else:
            report = self._model.profile(values, seconds, counters, cold, roof)
        return cast(ProfileReport, report)

    def _bound(self, values: list[Any]) -> Callable[[], object]:
        """Runs on these arrays, without more work than it needs."""
        model = self._model
        if isinstance(model, _core.Program):
            return lambda: model.run(values)
        instance = self.instance()
        for index, value in enumerate(values):
            instance.set_input(index, value)
        return instance.run

    def __repr__(self) -> str:
        def listed(ports: list[Port]) -> str:
            return ", ".join(f"{port.name}: {port.dtype}{list(port.shape)}" for port in ports)

        return f"<Executable ({listed(self.inputs)}) -> ({listed(self.outputs)})>"


def random_input(port: Port, random: np.random.Generator) -> npt.NDArray[Any]:
    """An array that fits an input: floats in [-1, 1), integers and bools 0 or 1, strings that are empty. Its sizes must be
    known."""
    if -1 in port.shape:
        raise InputError(f"input '{port.name}' is of dynamic shape {port.shape}", hint="give arrays")
    if port.dtype == "string":
        return np.full(port.shape, "", dtype=object)
    array = empty(port.shape, port.dtype)
    is_float = port.dtype.startswith(("float", "bfloat"))
    array[...] = random.uniform(-1, 1, port.shape) if is_float else random.integers(0, 2, port.shape)
    return array


def empty(shape: Sequence[int], dtype: str = "float32") -> npt.NDArray[Any]:
    """Returns an uninitialised NumPy array, aligned to 64 bytes, which executables read and write without a copy.

    >>> empty((2, 3)).ctypes.data % 64
    0

    Args:
        shape: sizes, outermost first.
        dtype: a name such as "float32"; "bfloat16" needs the package ml_dtypes.
    """
    return _core.empty([int(size) for size in shape], dtype)


def explanation(path: str | os.PathLike[str]) -> Explanation:
    """The explanation of a compilation, of an executable or of the file that ``explanation="FILE.json"`` wrote.

    Returns:
        The tree that docs/explanation.md describes.

    Raises:
        InputError: there is no explanation, or no such file.
        CorruptError: it is damaged.
        UnavailableError: another version of Collage wrote it.
    """
    return cast(Explanation, json.loads(_core.explanation_json(path)))


def load(path: str | os.PathLike[str]) -> Executable:
    """Maps a compiled model; see `Executable.load`."""
    return Executable.load(path)
