"""TensorRT as libcollage_rt_tensorrt.so calls it: engines out of ONNX models, and kernels out of engines.

The module holds this text and runs it in a Python that has TensorRT's wheels, or in the one that it finds itself in. Nothing but
the standard library and the wheels is imported. All modules in `MODULES` have the same names inside.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
import sysconfig
import tempfile
from types import ModuleType
from typing import Any

# TensorRT, then TensorRT-RTX: the wheel that one imports, and the wheel with the bindings, which is enough.
MODULES = {"tensorrt": "TensorRT", "tensorrt_rtx": "TensorRT-RTX"}
LEAST_VERSION = 10
"""For TensorRT; TensorRT-RTX counts from 1, and has all that is needed since then."""

# Names of element types in Collage, and in the library.
_TYPES = {
    "float32": "FLOAT",
    "float16": "HALF",
    "bfloat16": "BF16",
    "int64": "INT64",
    "int32": "INT32",
    "int8": "INT8",
    "uint8": "UINT8",
    "bool": "BOOL",
}


class UnavailableError(Exception):
    """The library, or the version of it that a kernel was made with, is not here."""


class CorruptError(Exception):
    """An engine cannot be read."""


class DeclinedError(Exception):
    """The library does not compute what it is asked for, in its words."""


# ---- the library ----


def _import(name: str) -> ModuleType:
    """Imports one of `MODULES`, or its bindings.

    Raises:
        UnavailableError: it is not installed, or is incomplete, or too old.
    """
    for module in (name, name + "_bindings"):
        if importlib.util.find_spec(module) is None:
            continue
        try:
            trt = importlib.import_module(module)
        except Exception as error:  # a library that is missing may be any of them
            raise UnavailableError(f"module '{module}' cannot be imported: {error}") from error
        major = int(trt.__version__.split(".")[0])
        if name == "tensorrt" and major < LEAST_VERSION:
            raise UnavailableError(f"TensorRT {trt.__version__} is too old: version {LEAST_VERSION} is needed")
        return trt
    raise UnavailableError(f"Python '{sys.executable}' has no module '{name}'")


def _find(name: str) -> tuple[str, ModuleType]:
    """Returns the module that is asked for, or the first of `MODULES` that is here, with its name in `MODULES`."""
    if name:
        return name, _import(name)
    reasons = []
    for candidate in MODULES:
        try:
            return candidate, _import(candidate)
        except UnavailableError as error:
            reasons.append(str(error))
    raise UnavailableError("; ".join(reasons))


def _interpreter() -> str:
    """Returns the shared library of this interpreter; "" if there is none."""
    file = str(sysconfig.get_config_var("INSTSONAME") or "")
    if ".so" not in file:
        file = f"libpython{sys.version_info.major}.{sys.version_info.minor}.so.1.0"
    folders = (sysconfig.get_config_var("LIBDIR"), os.path.join(sys.base_prefix, "lib"))
    for folder in filter(None, folders):
        for path in (os.path.join(folder, file), os.path.join(folder, sysconfig.get_config_var("MULTIARCH") or "", file)):
            if os.path.exists(path):
                return path
    return ""


def become(folders: str) -> None:
    """Makes the interpreter of a program that is not Python fit for modules.

    They are looked for in these folders, a JSON list, too. Each prefers the symbols of its own libraries to those of the
    program, which may have others of the same names: those of protobuf and ONNX, for example.
    """
    sys.setdlopenflags(os.RTLD_NOW | os.RTLD_DEEPBIND)
    sys.path.extend(folder for folder in json.loads(folders) if folder not in sys.path)


def look(name: str, is_python: bool) -> str:
    """Returns what is here, as JSON: the module and its version, or why there is none; the interpreter and its folders.

    Args:
        name: of the module, as for `_find`; "-" for none.
        is_python: whether Python runs in the process that would use it. Others need the interpreter as a shared library.
    """
    found: dict[str, Any] = {"interpreter": _interpreter(), "folders": sys.path, "program": sys.executable}
    if not is_python and not found["interpreter"]:
        file = f"libpython{sys.version_info.major}.{sys.version_info.minor}"
        found["reason"] = f"Python '{sys.executable}' has no shared library: install {file}"
    if name == "-" or "reason" in found:
        return json.dumps(found)
    try:
        module, trt = _find(name)
        found |= {"module": module, "version": f"{MODULES[module]} {trt.__version__}"}
        found["architectures"] = _architectures(trt)
    except UnavailableError as error:
        found["reason"] = str(error)
    return json.dumps(found)


# ---- engines ----


def _architectures(trt: ModuleType) -> list[str]:
    """Returns the GPUs that the module builds for without having them: none for TensorRT, which needs the GPU."""
    capabilities = getattr(trt, "ComputeCapability", None)
    names = getattr(capabilities, "__members__", {})
    return ["sm_" + one.removeprefix("SM") for one in names if one.startswith("SM")]


class _Log:
    """The library's words on its mistakes, for the reason of a failure."""

    def __init__(self, trt: ModuleType) -> None:
        lines: list[str] = []
        errors = (trt.ILogger.Severity.ERROR, trt.ILogger.Severity.INTERNAL_ERROR)

        class Logger(trt.ILogger):  # type: ignore[name-defined, misc]
            def __init__(self) -> None:
                trt.ILogger.__init__(self)

            def log(self, severity: Any, message: str) -> None:
                if severity in errors:
                    lines.append(" ".join(message.split()))

        self.logger = Logger()
        self._lines = lines

    def text(self, otherwise: str) -> str:
        return "; ".join(self._lines) or otherwise


def _set_architecture(trt: ModuleType, config: Any, wanted: str, here: str) -> None:
    """Has the builder build for `wanted` GPUs; where `wanted` is "", for the one that is here.

    A module that names no GPUs builds for the one that is here.
    """
    known = _architectures(trt)
    if (wanted or here) in known:
        config.num_compute_capabilities = 1
        config.set_compute_capability(getattr(trt.ComputeCapability, "SM" + (wanted or here).removeprefix("sm_")), 0)
    elif wanted not in ("", here):
        for_ = "builds for " + ", ".join(known) if known else "builds for the GPU that is here only"
        raise DeclinedError(f"{for_}, not for {wanted}")


class _Timings:
    """Timings of the library's own kernels, in a file, so that it takes each one only once. Does nothing without a file."""

    def __init__(self, config: Any, file: str) -> None:
        self._config = config
        self._file = file if hasattr(config, "create_timing_cache") else ""
        if not self._file:
            return
        known = b""
        try:
            with open(self._file, "rb") as opened:
                known = opened.read()
        except OSError:
            pass  # nothing is known yet
        cache = config.create_timing_cache(known) or config.create_timing_cache(b"")
        if cache is None or not config.set_timing_cache(cache, ignore_mismatch=False):
            self._file = ""

    def keep(self) -> None:
        cache = self._config.get_timing_cache() if self._file else None
        if cache is None:
            return
        try:
            folder = os.path.dirname(self._file)
            os.makedirs(folder, exist_ok=True)
            handle, part = tempfile.mkstemp(dir=folder)
            with os.fdopen(handle, "wb") as opened:
                opened.write(cache.serialize())
            os.replace(part, self._file)
        except OSError:
            pass  # they are taken again


def build(model: bytes, request: str) -> bytes:
    """Returns the engine of an ONNX model.

    Args:
        model: serialised. Its types are those that the engine computes in.
        request: JSON: the module's name in `MODULES`; "architecture", of the GPUs that the engine is for, or "" for that of the
            GPU here, "here"; "allows_tf32"; "level", how long the library may look for faster kernels, or -1 for its own choice;
            "timings", a file, or "".

    Raises:
        DeclinedError: the library refuses the model, or the GPU.
        UnavailableError: there is no library.
    """
    options = json.loads(request)
    _, trt = _find(options["module"])
    log = _Log(trt)
    builder = trt.Builder(log.logger)
    network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))
    parser = trt.OnnxParser(network, log.logger)
    if not parser.parse(model):
        errors = [" ".join(str(parser.get_error(i).desc()).split()) for i in range(parser.num_errors)]
        raise DeclinedError("; ".join(errors) or log.text("its parser refuses the model"))
    config = builder.create_builder_config()
    if options["allows_tf32"]:
        config.set_flag(trt.BuilderFlag.TF32)
    else:
        config.clear_flag(trt.BuilderFlag.TF32)
    if options["level"] >= 0:
        config.builder_optimization_level = options["level"]
    _set_architecture(trt, config, options["architecture"], options["here"])
    timings = _Timings(config, options["timings"])
    engine = builder.build_serialized_network(network, config)
    if engine is None:
        raise DeclinedError(log.text("it builds no engine, and says nothing"))
    timings.keep()
    return bytes(engine)


class Kernel:
    """An engine on the GPU of the calling thread's context.

    Args:
        engine: as `build` returned it.
        description: JSON: the module's "module", its "version", "inputs" and "outputs", each a list of {"name", "dtype", "shape"}.

    Raises:
        UnavailableError: the library is not here, or another version of it.
        CorruptError: there is no such engine, or with other tensors.
    """

    def __init__(self, engine: bytes, description: str) -> None:
        wanted = json.loads(description)
        name, trt = _find(wanted["module"])
        version = f"{MODULES[name]} {trt.__version__}"
        if version != wanted["version"]:
            raise UnavailableError(f"a kernel was made by {wanted['version']}, here is {version}")
        log = _Log(trt)
        runtime = trt.Runtime(log.logger)
        read = runtime.deserialize_cuda_engine(engine)
        if read is None:
            raise CorruptError(log.text("the library cannot read a kernel's engine"))
        context = read.create_execution_context()
        if context is None:
            raise RuntimeError(log.text("the library cannot prepare a kernel's engine"))
        self._ports = [*wanted["inputs"], *wanted["outputs"]]
        self._taken = _check_ports(trt, read, self._ports)
        # Results of others go before them.
        self._owners = (context, read, runtime, log)
        self._context = context
        self._log = log

    def bind(self, *addresses: int) -> None:
        """Names the memory of all inputs and then all outputs."""
        for port, address in zip(self._ports, addresses, strict=True):
            if port["name"] in self._taken and not self._context.set_tensor_address(port["name"], address):
                raise RuntimeError(self._log.text(f"the library refuses memory for '{port['name']}'"))

    def enqueue(self, stream: int) -> None:
        """Puts the work on a stream."""
        if not self._context.execute_async_v3(stream):
            raise RuntimeError(self._log.text("the library cannot run a kernel's engine"))


def _check_ports(trt: ModuleType, engine: Any, ports: list[dict[str, Any]]) -> set[str]:
    """Returns the names of the engine's tensors, which are among `ports`; an engine may lack inputs that it does not need."""
    known = {port["name"]: port for port in ports}
    names = {engine.get_tensor_name(i) for i in range(engine.num_io_tensors)}
    for name in names:
        if name not in known:
            raise CorruptError(f"a kernel's engine has a tensor '{name}' that there is not")
        shape, dtype = tuple(engine.get_tensor_shape(name)), engine.get_tensor_dtype(name)
        port = known[name]
        if shape != tuple(port["shape"]) or dtype != getattr(trt.DataType, _TYPES[port["dtype"]]):
            raise CorruptError(f"a kernel's engine has '{name}' of {dtype}, {shape}, not {port['dtype']}, {port['shape']}")
    for port in ports:
        if port["name"] not in names and port["name"].startswith("output"):
            raise CorruptError(f"a kernel's engine does not compute '{port['name']}'")
    return names
