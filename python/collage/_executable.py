"""Compiled models, as Python uses them."""

from __future__ import annotations

import copy
import json
import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Union, cast, overload

import numpy as np
import numpy.typing as npt

from collage import _arguments, _core, _pictures
from collage._core import Instance
from collage._ports import NodeArg, Port, in_order, node_arg, ports, random_input
from collage._timings import BenchmarkSummary
from collage.errors import InputError, UnsupportedError
from collage.explanations import Explanation
from collage.reports import CompileReport, ProfileReport

File = Union[str, "os.PathLike[str]", bytes, "IO[bytes]"]
"""A path, the bytes of a file, or a file that is open for reading bytes."""


@dataclass(frozen=True)
class Partition:
    """A piece of the model that runs as one kernel.

    ``operators`` are joined by '+', ``nodes`` are the model's names of what is inside.
    """

    toolchain: str
    operators: str
    nodes: list[str]
    estimated_seconds: float


def _load_file(given: File) -> _core.Model | _core.Program:
    """Maps a file, or loads its bytes."""
    data = _arguments.content(given)
    if data is not None:
        name = str(getattr(given, "name", "memory"))
        return (_core.Program if _core.Program.begins(data) else _core.Model).from_bytes(data, name)
    if not isinstance(given, (str, os.PathLike)):
        kind = type(given).__name__
        raise InputError(f"expected a path, bytes or an open file, got '{kind}'", "file")
    path = _arguments.existing(given)
    return _core.Program.load(path) if _core.Bytecode.is_bytecode(path) else _core.Model.load(path)


def _restored(data: bytes, report: CompileReport | None) -> Executable:
    """The executable that `Executable.__reduce__` took apart."""
    return Executable(_load_file(data), report)


class Executable:
    """A compiled model. Call it with arrays, by position or by name:

        exe = collage.load("model.clg")
        scores = exe(image)

    Takes NumPy arrays, torch tensors and other objects with DLPack. Memory that is aligned to 64 bytes (torch's, and that
    of `collage.empty`) is read in place, other memory is copied. Results are NumPy arrays with memory of their own. May be
    called from several threads at once: each call runs on an instance of its own, and Python's interpreter lock is
    released meanwhile.

    It can be pickled, as the bytes of its file; a deep copy shares code and constants. ``with`` closes it at its end.
    """

    def __init__(self, model: _core.Model | _core.Program, report: Mapping[str, Any] | None = None) -> None:
        self._loaded: _core.Model | _core.Program | None = model
        self._given_report = report
        self.inputs: list[Port] = ports(model.inputs())
        """Inputs in their order."""
        self.outputs: list[Port] = ports(model.outputs())
        """Outputs in their order."""

    @property
    def _model(self) -> _core.Model | _core.Program:
        if self._loaded is None:
            raise InputError("the executable is closed", hint="load it again")
        return self._loaded

    @staticmethod
    def load(file: File) -> Executable:
        """Loads a file that was compiled.

        Args:
            file: its path, which is mapped; or its bytes, or an open file, which are copied.

        Raises:
            MissingFileError: there is no such file; it is a FileNotFoundError, too.
            InputError: it cannot be read, or is of another kind.
            CorruptError: it is damaged.
            UnavailableError: another kind of processor, or a toolchain that is not here, is needed to run it.
        """
        return Executable(_load_file(file))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the file, whole or not at all."""
        self._model.save(path)

    def to_bytes(self) -> bytes:
        """Returns the bytes that `save` writes."""
        with tempfile.TemporaryDirectory(prefix="collage-") as folder:
            path = Path(folder) / "model.clg"
            self.save(path)
            return path.read_bytes()

    @staticmethod
    def verify(path: str | os.PathLike[str]) -> None:
        """Reads the whole file and checks all checksums; raises CorruptError."""
        path = _arguments.existing(path)
        if _core.Bytecode.is_bytecode(path):
            _core.Program.load(path)  # which checks all
        else:
            _core.verify(path)

    def close(self) -> None:
        """Lets go of the file and of memory; calls raise InputError from then on. Instances stay usable."""
        self._loaded = None

    def __enter__(self) -> Executable:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __reduce__(self) -> tuple[Callable[..., Executable], tuple[bytes, Mapping[str, Any] | None]]:
        return _restored, (self.to_bytes(), self._given_report)

    def __copy__(self) -> Executable:
        return Executable(self._model, self._given_report)

    def __deepcopy__(self, memo: dict[int, Any]) -> Executable:
        return Executable(self._model, copy.deepcopy(self._given_report, memo))

    @cached_property
    def report(self) -> CompileReport | None:
        """The report of its compilation, as ``collage compile --json`` prints it.

        For a file that was loaded, it is the one in the file's explanation, which was made before the file was written:
        ``output_bytes`` and ``seconds`` are those until then. None if the file has no explanation.

        Raises:
            CorruptError: the explanation is damaged.
        """
        found = self._given_report
        if found is None:
            text = self._model.explanation_json()
            found = None if text is None else json.loads(text)["report"]
        return None if found is None else cast(CompileReport, _pictures.ShownCompileReport(found))

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

    def get_inputs(self) -> list[NodeArg]:
        """Returns the inputs as ONNX Runtime describes them: each has ``name``, ``shape`` and ``type``."""
        return [node_arg(port) for port in self.inputs]

    def get_outputs(self) -> list[NodeArg]:
        """Returns the outputs as ONNX Runtime describes them: each has ``name``, ``shape`` and ``type``."""
        return [node_arg(port) for port in self.outputs]

    def explain(self) -> Explanation:
        """Why it is made as it is: what was chosen, from which candidates, at which costs. ``collage explain`` shows it.

        Raises:
            InputError: it was compiled with ``explanation="none"``, or with a file, which `collage.explanation` reads.
            CorruptError: the explanation is damaged.
        """
        return cast(Explanation, _pictures.ShownExplanation(json.loads(self._explanation_text())))

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

    def _values(self, inputs: Mapping[str, Any] | Sequence[Any]) -> list[Any]:
        if isinstance(inputs, Mapping):
            return in_order(self.inputs, (), inputs)
        return in_order(self.inputs, inputs, {})

    def __call__(self, /, *args: Any, **named: Any) -> Any:
        """Runs once. Returns the output's array, or a tuple of them when there are several.

        Args:
            args: arrays in the order of the inputs, or one dict of arrays by the inputs' names; a list for an input of
                the model that is a sequence.
            named: arrays by the inputs' names; a list for a sequence.

        Raises:
            InputError: an input is missing, unknown, or of another shape or dtype.
        """
        if len(args) == 1 and isinstance(args[0], Mapping):
            for name in named:
                if name in args[0]:
                    raise InputError(f"input '{name}' is given twice")
            named.update(args[0])
            args = ()
        results = self._model.run(in_order(self.inputs, args, named))
        return results[0] if len(results) == 1 else tuple(results)

    @overload
    def run(self, inputs: Mapping[str, Any] | Sequence[Any], /) -> dict[str, npt.NDArray[Any]]: ...

    @overload
    def run(self, *, inputs: Mapping[str, Any] | Sequence[Any]) -> dict[str, npt.NDArray[Any]]: ...

    @overload
    def run(
        self, output_names: str | Sequence[str] | None, input_feed: Mapping[str, Any], run_options: None = None
    ) -> list[npt.NDArray[Any]]: ...

    def run(self, *args: Any, **named: Any) -> Any:
        """Runs once: ``run(inputs)``, or ``run(output_names, input_feed)`` as ONNX Runtime has it.

        Args:
            inputs: arrays by name or in order. The result is a dict: outputs by name.
            output_names: names of outputs; None for all. The result is a list of these outputs.
            input_feed: arrays by name.
            run_options: of ONNX Runtime; only None.

        Raises:
            InputError: an input is missing, unknown, or of another shape or dtype; there is no such output.
            UnsupportedError: there are ``run_options``.

        Example:
            >>> from collage import compile, relay
            >>> x = relay.var("x", shape=(2,))
            >>> exe = compile(relay.Function([x], relay.nn.relu(x)), threads=1, partition_for="native")
            >>> exe.run({"x": np.float32([-1, 2])})
            {'output_0': array([0., 2.], dtype=float32)}
            >>> exe.run(None, {"x": np.float32([-1, 2])})
            [array([0., 2.], dtype=float32)]
        """
        if len(args) == 2 and not named:
            return self._run_outputs(*args)
        if len(args) + len(named) == 1 and (args or "inputs" in named):
            values = self._values(args[0] if args else named["inputs"])
            return dict(zip([port.name for port in self.outputs], self._model.run(values)))
        given = dict(zip(("output_names", "input_feed", "run_options"), args))
        if len(args) > 3 or given.keys() & named.keys() or not {"output_names", "input_feed"} <= {*given, *named}:
            raise TypeError("run() takes the inputs, or output_names and input_feed")
        return self._run_outputs(**given, **named)

    def _run_outputs(self, output_names: Any, input_feed: Any, run_options: object = None) -> list[npt.NDArray[Any]]:
        if run_options is not None:
            raise UnsupportedError("run options of ONNX Runtime are not supported", "run_options", "give None")
        feed = _arguments.mapping(input_feed, "input_feed", '{"x": array}')
        if output_names is None:
            return list(self._model.run(self._values(feed)))
        known = [port.name for port in self.outputs]
        wanted = _arguments.names(output_names, "output_names", separator=None)
        for name in wanted:
            if name not in known:
                raise InputError(f"there is no output '{name}'", hint=f"there are: {', '.join(known)}")
        results = dict(zip(known, self._model.run(self._values(feed))))
        return [results[name] for name in wanted]

    def instance(self) -> Instance:
        """One execution with memory of its own, for callers that bind arrays once and run often.

        Raises UnsupportedError for a model with control flow or dynamic shapes.
        """
        if isinstance(self._model, _core.Program):
            raise UnsupportedError("the shapes of this model's results are known in a run only", hint="call it")
        return Instance(self._model)

    def benchmark(
        self, seconds: float = 1.0, inputs: Mapping[str, Any] | Sequence[Any] | None = None
    ) -> BenchmarkSummary:
        """Times runs with inputs bound, one after the other.

        Args:
            seconds: how long to go on; at least five runs are made.
            inputs: arrays by name or in the order of the inputs; random ones when there are none.

        Returns:
            Seconds of each run as a list, with percentiles (``p50``, ``p90``, ``p99``, ``mean``); the first run, which
            warms up, is left out.
        """
        random = np.random.default_rng(0)
        values = [random_input(port, random) for port in self.inputs] if inputs is None else self._values(inputs)
        run = self._bound(values)
        run()
        samples = BenchmarkSummary()
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
            The report: ``steps``, each with its toolchain, operators, nodes of the model and times in seconds,
            ``timeline``, ``memory``, ``arenas``; its page is docs/profile.md.

        Raises:
            InputError: inputs do not fit, or a size is not known.
        """
        values = [] if inputs is None else self._values(inputs)
        report: Any
        chosen = _arguments.mapping(sizes, "sizes", '{"batch": 8}')
        if isinstance(self._model, _core.Program):
            report = self._model.profile(values, chosen, seconds, counters, cold, roof)
        elif chosen:
            raise InputError("this model's inputs have no dynamic dimensions", hint="leave out sizes")
        else:
            report = self._model.profile(values, seconds, counters, cold, roof)
        return cast(ProfileReport, _pictures.ShownProfileReport(report))

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
        return f"<Executable {self._signature()}>"

    def _signature(self) -> str:
        def listed(some: list[Port]) -> str:
            return ", ".join(f"{port.name}: {port.dtype}{list(port.shape)}" for port in some)

        return f"({listed(self.inputs)}) -> ({listed(self.outputs)})"

    def _repr_html_(self) -> str:
        text = self._model.explanation_json()
        if text is None:
            model = str(self.metadata.get("model", ""))
            pieces = [_pictures.Piece(p.toolchain, p.operators, p.nodes, p.estimated_seconds) for p in self.partitions]
            between = 0.0
        else:
            explanation = json.loads(text)
            model = explanation["model"]
            pieces, between = _pictures.pieces_of(explanation)
        return _pictures.of_executable(model, self._signature(), self.num_threads, self.report, pieces, between)


def explanation(path: str | os.PathLike[str]) -> Explanation:
    """The explanation of a compilation, of an executable or of the file that ``explanation="FILE.json"`` wrote.

    Returns:
        The tree that docs/explanation.md describes.

    Raises:
        InputError: there is no explanation, or no such file.
        CorruptError: it is damaged.
        UnavailableError: another version of Collage wrote it.
    """
    text = _core.explanation_json(_arguments.existing(path))
    return cast(Explanation, _pictures.ShownExplanation(json.loads(text)))


def sign(path: str | os.PathLike[str], key: str | os.PathLike[str]) -> Path:
    """Signs an executable, as ``collage sign`` does, and returns the signature's file, beside the executable's.

    Args:
        path: the executable's file.
        key: a PEM file with a private key for Ed25519 (RFC 8032).

    Raises:
        InputError: there is no such key in the file.
        UnavailableError: OpenSSL's libcrypto is missing.
    """
    return _core.sign(_arguments.existing(path), _arguments.existing(key))


def require_signatures(key: str | os.PathLike[str]) -> None:
    """From now on, this process loads only executables that the owner of a key has signed.

    Bytes and open files, which have no signature, are refused, and so are executables that this process compiles. This
    cannot be taken back.

    Args:
        key: a PEM file with a public key for Ed25519.

    Raises:
        InputError: there is no such key in the file, or another one is required already.
        UnavailableError: OpenSSL's libcrypto is missing.
    """
    _core.require_signatures(_arguments.existing(key))


def load(file: File) -> Executable:
    """Loads a compiled model, from a path, bytes or an open file; see `Executable.load`.

    Example:
        >>> import collage
        >>> from collage import relay
        >>> x = relay.var("x", shape=(2,))
        >>> made = collage.compile(relay.Function([x], relay.nn.relu(x)), threads=1, partition_for="native")
        >>> with load(made.to_bytes()) as exe:
        ...     exe(np.float32([-1, 2]))
        array([0., 2.], dtype=float32)
    """
    return Executable.load(file)
