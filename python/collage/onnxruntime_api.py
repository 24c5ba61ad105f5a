"""Sessions as ONNX Runtime has them, for code that is written for it: the import is the only line to change.

    import collage.onnxruntime_api as ort

    session = ort.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])
    logits = session.run(["logits"], {"image": image})[0]

The first session of a model compiles it, which takes about a minute unless ``budget`` says otherwise. The executable is kept
in a folder, where later sessions find it by the model's content, the threads, the settings, and the versions of Collage and
its toolchains.

Options and methods of ONNX Runtime that Collage lacks raise an error; nothing that is asked for is ignored.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import warnings
from collections.abc import Mapping, Sequence
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from collage import _arguments, _core, transform
from collage._compile import compile as compile_model
from collage._compile import toolchains
from collage._executable import Executable
from collage._onnx_file import ModelMetadata, external_files, metadata_of
from collage._ports import NodeArg
from collage._settings import Settings
from collage.errors import CorruptError, InputError, UnavailableError, UnsupportedError

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = [
    "ExecutionMode",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "ModelMetadata",
    "NodeArg",
    "SessionOptions",
    "get_available_providers",
    "get_device",
]

_log = logging.getLogger(__name__)

_PROVIDERS = ["CollageExecutionProvider", "CPUExecutionProvider"]
_ERROR_SEVERITY = 3
_BUDGET = "60s"  # a session that is made without one is wanted soon
_EXECUTABLE_MAGIC = b"CLG"
_WRITING = ("write_partitioning", "write_module", "dump")


class GraphOptimizationLevel(IntEnum):
    """ONNX Runtime's levels; Collage always optimises as much as it can, which is ``ORT_ENABLE_ALL``."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(IntEnum):
    """ONNX Runtime's ways to run a graph; Collage runs partitions one after the other, each on all threads."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


def get_available_providers() -> list[str]:
    """Returns the names that ``providers`` may have.

    >>> get_available_providers()
    ['CollageExecutionProvider', 'CPUExecutionProvider']
    """
    return list(_PROVIDERS)


def get_device() -> str:
    """Returns "CPU", the device that sessions run on."""
    return "CPU"


def _is_any(value: object) -> bool:
    return True


# Attributes of SessionOptions: the default, which values are taken, and what to do instead of others.
_OPTIONS: dict[str, tuple[Any, Any, str]] = {
    "enable_cpu_mem_arena": (True, lambda value: value, "memory is planned when the model is compiled"),
    "enable_mem_pattern": (True, lambda value: value, "memory is planned when the model is compiled"),
    "enable_mem_reuse": (True, lambda value: value, "memory is planned when the model is compiled"),
    "enable_profiling": (False, lambda value: not value, "session.executable.profile() tells where the time goes"),
    "execution_mode": (
        ExecutionMode.ORT_SEQUENTIAL,
        lambda value: value == ExecutionMode.ORT_SEQUENTIAL,
        "partitions run one after the other, each on all threads",
    ),
    "graph_optimization_level": (
        GraphOptimizationLevel.ORT_ENABLE_ALL,
        lambda value: value == GraphOptimizationLevel.ORT_ENABLE_ALL,
        "the settings opt_level and disabled_pass of the session say which passes run",
    ),
    "inter_op_num_threads": (0, lambda value: value in (0, 1), "partitions run one after the other"),
    "intra_op_num_threads": (0, lambda value: value >= 0, "0 stands for all processors that the process may use"),
    "log_severity_level": (
        2,
        lambda value: value in range(5),
        "a level is from 0 to 4; from 3 on, warnings are not shown",
    ),
    "log_verbosity_level": (0, lambda value: value == 0, "there are no verbose messages"),
    "logid": ("", _is_any, ""),
    "optimized_model_filepath": ("", lambda value: not value, "session.executable.save(path) writes the executable"),
    "use_deterministic_compute": (False, lambda value: not value, "leave it out"),
}


class SessionOptions:
    """Options of a session. Setting one that Collage cannot follow raises UnsupportedError at once.

    ``intra_op_num_threads`` is the number of threads of runs: 0 for all processors that the process may use.
    ``log_severity_level`` from 3 on hides warnings of the compilation.

    >>> options = SessionOptions()
    >>> options.intra_op_num_threads = 2
    >>> options.add_free_dimension_override_by_name("batch", 1)
    >>> options.enable_profiling = True
    Traceback (most recent call last):
        ...
    collage.errors.UnsupportedError: enable_profiling: error: Collage has no sessions with enable_profiling=True
    hint: session.executable.profile() tells where the time goes
    """

    intra_op_num_threads: int
    log_severity_level: int

    def __init__(self) -> None:
        self._dims: dict[str, int] = {}

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "_dims":
            return super().__setattr__(name, value)
        if name not in _OPTIONS:
            raise AttributeError(f"there is no session option '{name}'; there are: {', '.join(_OPTIONS)}")
        _, allowed, hint = _OPTIONS[name]
        if not allowed(value):
            raise UnsupportedError(f"Collage has no sessions with {name}={value!r}", name, hint)
        super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        if name in _OPTIONS:
            return _OPTIONS[name][0]
        raise AttributeError(f"collage.onnxruntime_api has no SessionOptions.{name}")

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """Gives a dimension that the model leaves open a size in all inputs.

        Args:
            name: the model's name of the dimension.
            size: the size.
        """
        self._dims[name] = int(size)

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Raises UnsupportedError: Collage has none of these options."""
        raise UnsupportedError(f"there is no session option '{key}'", "add_session_config_entry", "leave it out")


def _cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "collage" / "executables"


def _key(model: bytes, folder: Path | None, settings: Mapping[str, Any]) -> str:
    """Names what an executable depends on: the model's content, settings, versions, the kind of processor."""
    digest = hashlib.sha256(model)
    for file in [] if folder is None else external_files(model, folder):
        with open(file, "rb") as weights:
            while block := weights.read(1 << 24):
                digest.update(block)
    versions = [(row["name"], row["version"]) for row in toolchains() if row["available"]]
    about = [_core.version(), _core.machine_fingerprint(), versions, sorted(settings.items())]
    digest.update(json.dumps(about, default=str, sort_keys=True).encode())
    for value in settings.values():
        if isinstance(value, (str, os.PathLike)) and value != settings.get("database") and os.path.isfile(value):
            digest.update(Path(value).read_bytes())  # partitions to take, for example
    return digest.hexdigest()[:32]


def _check_settings(settings: Mapping[str, Any]) -> None:
    """Refuses what an executable from the cache would not do."""
    hint = "compile with collage.compile, and give the session the file that it writes"
    for name, value in settings.items():
        writes = name in _WRITING or (name == "explanation" and value not in ("inside", "none"))
        if writes or callable(value) or hasattr(value, "estimate") or name == "check_inputs":
            raise UnsupportedError("a session takes no such setting: its executable is kept and used again", name, hint)
    if transform._current.get():
        raise UnsupportedError("a session takes no PassContext: its executable is kept and used again", "", hint)


def _is_executable(model: bytes | Path) -> bool:
    if isinstance(model, bytes):
        return model.startswith(_EXECUTABLE_MAGIC)
    with open(model, "rb") as file:
        return file.read(len(_EXECUTABLE_MAGIC)) == _EXECUTABLE_MAGIC


def _check_providers(providers: Sequence[Any] | None, provider_options: Sequence[Any] | None) -> None:
    for one in [] if providers is None else [providers] if isinstance(providers, str) else providers:
        name, options = one if isinstance(one, tuple) else (one, {})
        if name not in _PROVIDERS:
            hint = f"there are: {', '.join(_PROVIDERS)}; the setting toolchains says what may take part"
            raise UnsupportedError(f"there is no provider '{name}'", "providers", hint)
        if options:
            raise UnsupportedError(f"provider '{name}' has no options", "providers", "give settings of collage.compile")
    if any(provider_options or ()):
        raise UnsupportedError("providers have no options", "provider_options", "give settings of collage.compile")


class InferenceSession:
    """A model to run, with the methods of ``onnxruntime.InferenceSession``.

    Args:
        path_or_bytes: an ONNX model or an executable (.clg), its path or its bytes.
        sess_options: `SessionOptions`, of this module.
        providers: None, or names of `get_available_providers`.
        provider_options: None, or empty.
        cache_folder: where executables are kept; None: ``$XDG_CACHE_HOME/collage/executables``, else
            ``~/.cache/collage/executables``. It may be emptied at any time.
        progress: shows the progress of the compilation, as `collage.compile` does.
        settings: of `collage.compile` (docs/settings.md). Without ``budget`` the search ends after a minute.

    Attributes:
        executable: the `collage.Executable`, for all that ONNX Runtime has no method for.

    Raises:
        MissingFileError: there is no such file; it is a FileNotFoundError, too.
        UnsupportedError: an option or a provider that Collage has not, or an operator.
        InputError: the model is damaged; an executable has another number of threads than the options say.

    Example:
        >>> import tempfile
        >>> import collage
        >>> from collage import relay
        >>> x = relay.var("x", shape=(2,))
        >>> model = collage.frontend.to_onnx(relay.Function([x], relay.nn.relu(x)), output_names=["y"])
        >>> options = SessionOptions()
        >>> options.intra_op_num_threads = 1
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     session = InferenceSession(model, options, cache_folder=folder, toolchains="native")
        >>> session.run(None, {"x": np.float32([-1, 2])})
        [array([0., 2.], dtype=float32)]
    """

    def __init__(
        self,
        path_or_bytes: str | os.PathLike[str] | bytes,
        sess_options: SessionOptions | None = None,
        providers: Sequence[Any] | None = None,
        provider_options: Sequence[Any] | None = None,
        *,
        cache_folder: str | os.PathLike[str] | None = None,
        progress: bool = False,
        **settings: Unpack[Settings],
    ) -> None:
        if sess_options is not None and not isinstance(sess_options, SessionOptions):
            hint = "make one with collage.onnxruntime_api.SessionOptions()"
            raise InputError(f"expected SessionOptions of this module, got {sess_options!r}", "sess_options", hint)
        _check_providers(providers, provider_options)
        self._options = SessionOptions() if sess_options is None else sess_options
        self._metadata: ModelMetadata | None = None
        given = path_or_bytes if isinstance(path_or_bytes, bytes) else Path(_arguments.existing(path_or_bytes))
        if _is_executable(given):
            self.executable = self._opened(given, settings)
            return
        content = given if isinstance(given, bytes) else given.read_bytes()
        self.executable = self._compiled(given, content, Path(cache_folder or _cache_folder()), progress, settings)
        self._metadata = metadata_of(content)

    def _opened(self, file: bytes | Path, settings: Mapping[str, Any]) -> Executable:
        """An executable that was compiled before."""
        for name in settings:
            raise InputError("the model is compiled already", name, "settings are for models of ONNX")
        if self._options._dims:
            raise InputError("the model is compiled already", "sess_options", "leave out overrides of free dimensions")
        executable = Executable.load(file)
        threads = self._options.intra_op_num_threads
        if threads not in (0, executable.num_threads):
            raise InputError(
                f"the executable was compiled for {executable.num_threads} threads, not {threads}",
                "intra_op_num_threads",
                "compile the model for as many: give the session the ONNX model",
            )
        return executable

    def _compiled(
        self, model: bytes | Path, content: bytes, cache: Path, progress: bool, settings: Settings
    ) -> Executable:
        """The executable of a model: the one in the cache, or a new one that is put there."""
        _check_settings(settings)
        chosen: dict[str, Any] = {**settings, "threads": self._threads(settings)}
        if self._options._dims:
            chosen["dims"] = {**self._options._dims, **(settings.get("dims") or {})}
        folder = None if isinstance(model, bytes) else model.parent
        kept = cache / f"{_key(content, folder, chosen)}.clg"
        if kept.exists():
            try:
                return Executable.load(kept)
            except (CorruptError, UnavailableError) as error:
                _log.warning("%s is compiled again: %s", kept, error)
        cache.mkdir(parents=True, exist_ok=True)
        _log.info("compiling for %s threads, once: the executable is kept as %s", chosen["threads"], kept)
        with warnings.catch_warnings():
            if self._options.log_severity_level >= _ERROR_SEVERITY:
                warnings.simplefilter("ignore")
            if chosen.get("budget") is None:
                chosen["budget"] = _BUDGET
            return compile_model(model, kept, progress=progress, **chosen)

    def _threads(self, settings: Settings) -> int:
        asked = self._options.intra_op_num_threads
        return _arguments.session_threads(settings.get("threads"), asked) or _core.available_processors()

    def run(
        self, output_names: str | Sequence[str] | None, input_feed: Mapping[str, Any], run_options: None = None
    ) -> list[npt.NDArray[Any]]:
        """Runs once; may be called from several threads.

        Args:
            output_names: which outputs; None for all.
            input_feed: arrays by the names of inputs.
            run_options: only None.

        Returns:
            The outputs' arrays, in the order of ``output_names``.

        Raises:
            InputError: an input is missing, unknown, or of another shape or dtype; there is no such output.
            UnsupportedError: there are ``run_options``.
        """
        return self.executable.run(output_names, input_feed, run_options)

    def get_inputs(self) -> list[NodeArg]:
        """Returns the inputs: each has ``name``, ``shape`` and ``type``."""
        return self.executable.get_inputs()

    def get_outputs(self) -> list[NodeArg]:
        """Returns the outputs: each has ``name``, ``shape`` and ``type``."""
        return self.executable.get_outputs()

    def get_modelmeta(self) -> ModelMetadata:
        """Returns the head of the ONNX model.

        Raises:
            UnsupportedError: the session is of an executable, which does not hold it.
        """
        if self._metadata is None:
            hint = "session.executable.metadata has what an executable knows of its model"
            raise UnsupportedError("an executable does not hold the metadata of its ONNX model", "get_modelmeta", hint)
        return self._metadata

    def get_providers(self) -> list[str]:
        """Returns ``["CollageExecutionProvider"]``; ``session.executable.partitions`` says which toolchain runs what."""
        return [_PROVIDERS[0]]

    def get_session_options(self) -> SessionOptions:
        """Returns the options that the session was made with."""
        return self._options

    def io_binding(self) -> IOBinding:
        """Returns a new set of bound arrays, for `run_with_iobinding`."""
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: None = None) -> None:
        """Runs once on bound arrays.

        Args:
            iobinding: the arrays; a result of `io_binding`.
            run_options: only None.

        Raises:
            InputError: an input is not bound.
            UnsupportedError: there are ``run_options``.
        """
        if run_options is not None:
            raise UnsupportedError("run options of ONNX Runtime are not supported", "run_options", "give None")
        iobinding._run()

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"collage.onnxruntime_api has no InferenceSession.{name}")


class IOBinding:
    """Arrays that a session reads and writes in place, by name. Made by `InferenceSession.io_binding`."""

    def __init__(self, session: InferenceSession) -> None:
        self._executable = session.executable
        self._instance = self._executable.instance()
        self._copied: dict[str, Any] = {}
        self._wanted: list[str] = []

    def bind_cpu_input(self, name: str, array: Any) -> None:
        """Reads an input from this array: in place if it is aligned to 64 bytes (`collage.empty`), else each run copies it."""
        self._instance.set_input(name, array)
        self._copied.pop(name, None)
        if not isinstance(array, np.ndarray) or array.ctypes.data % 64 != 0 or not array.flags.c_contiguous:
            self._copied[name] = array

    def bind_output(self, name: str, device_type: str = "cpu", device_id: int = 0, *, array: Any = None) -> None:
        """Asks for an output.

        Args:
            name: the output.
            device_type: only "cpu".
            device_id: only 0.
            array: where to write it: aligned to 64 bytes, as `collage.empty` gives it; None: memory of the binding.
        """
        if (device_type, device_id) != ("cpu", 0):
            raise UnsupportedError(f"outputs are in the processor's memory, not on '{device_type}'", "device_type")
        if array is None:
            self._instance.get_output(name)  # which fails for an unknown name
        else:
            self._instance.set_output(name, array)
        if name not in self._wanted:
            self._wanted.append(name)

    def copy_outputs_to_cpu(self) -> list[npt.NDArray[Any]]:
        """Returns copies of the outputs that were asked for, in the order of `bind_output`."""
        return [np.array(self._instance.get_output(name)) for name in self._wanted]

    def _run(self) -> None:
        for name, array in self._copied.items():
            self._instance.set_input(name, array)
        self._instance.run()

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"collage.onnxruntime_api has no IOBinding.{name}; bind_cpu_input and bind_output take arrays"
        )


def __getattr__(name: str) -> Any:
    raise AttributeError(f"collage.onnxruntime_api has no '{name}'; it has: {', '.join(__all__)}")
