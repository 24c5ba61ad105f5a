"""TensorRT's Python module for tests on machines without a GPU.

An engine is the ONNX model, which ONNX's reference evaluation computes, on streams and in memory of the stand-in for the driver
(tests/standins/libcuda.cc). Names, arguments and results are those of TensorRT 10. It is as unkind as the documentation allows:

  - Networks are strongly typed: nothing is computed in other types than the model says.
  - TF32 is allowed unless the flag is cleared. Then float32 factors of products are rounded to 10 bits behind the point.
  - A call that fails returns None or False, and tells the logger why.
  - An engine is read by the version that built it, on a thread with a context.
  - Tensors begin at multiples of 256 bytes, in memory of the GPU. All of them have addresses before an engine runs.
  - Addresses count when work is put on a stream, which is done later.
  - The first run of a context cannot be captured in a graph, since it prepares what later ones use. The others can.
  - Tensors have at most 8 dimensions, and are of eight types; an engine has no tensors without elements.

tests/conformance/gpu/tensorrt_test.cc tests these assumptions; it runs on a real GPU with the real library, too.
"""

from __future__ import annotations

import ctypes
import enum
import functools
import json
import struct
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnx.reference
from onnx import TensorProto
from onnx.reference.op_run import OpRun
from onnx.reference.ops import load_op

__version__ = "10.99.0"

_MAGIC = b"stand-in engine\0"
_ALIGNMENT = 256
_MOST_RANK = 8


class DataType(enum.Enum):
    FLOAT = np.dtype("float32")
    HALF = np.dtype("float16")
    BF16 = np.dtype(ml_dtypes.bfloat16)
    INT64 = np.dtype("int64")
    INT32 = np.dtype("int32")
    INT8 = np.dtype("int8")
    UINT8 = np.dtype("uint8")
    BOOL = np.dtype("bool")


_FROM_ONNX = {
    TensorProto.FLOAT: DataType.FLOAT,
    TensorProto.FLOAT16: DataType.HALF,
    TensorProto.BFLOAT16: DataType.BF16,
    TensorProto.INT64: DataType.INT64,
    TensorProto.INT32: DataType.INT32,
    TensorProto.INT8: DataType.INT8,
    TensorProto.UINT8: DataType.UINT8,
    TensorProto.BOOL: DataType.BOOL,
}


class NetworkDefinitionCreationFlag(enum.IntEnum):
    STRONGLY_TYPED = 1


class BuilderFlag(enum.IntEnum):
    TF32 = 7


class ILogger:
    class Severity(enum.IntEnum):
        INTERNAL_ERROR = 0
        ERROR = 1
        WARNING = 2

    def __init__(self) -> None:
        pass

    def log(self, severity: ILogger.Severity, message: str) -> None:
        raise NotImplementedError


# ---- building ----


class _ParserError:
    def __init__(self, text: str) -> None:
        self._text = text

    def desc(self) -> str:
        return self._text


class Network:
    model: onnx.ModelProto | None = None


class OnnxParser:
    def __init__(self, network: Network, logger: ILogger) -> None:
        self._network = network
        self._errors: list[_ParserError] = []

    @property
    def num_errors(self) -> int:
        return len(self._errors)

    def get_error(self, index: int) -> _ParserError:
        return self._errors[index]

    def parse(self, model: bytes) -> bool:
        try:
            read = onnx.load_model_from_string(model)
            onnx.checker.check_model(read, full_check=True)
        except Exception as error:  # whatever the checker finds
            self._errors.append(_ParserError(str(error)))
            return False
        for value in [*read.graph.input, *read.graph.output]:
            tensor = value.type.tensor_type
            sizes = [dim.dim_value for dim in tensor.shape.dim]
            if tensor.elem_type not in _FROM_ONNX or len(sizes) > _MOST_RANK or 0 in sizes:
                self._errors.append(_ParserError(f"'{value.name}' is no tensor of an engine"))
        self._network.model = read
        return not self._errors


class TimingCache:
    def __init__(self, known: bytes) -> None:
        self.known = known

    def serialize(self) -> bytes:
        return self.known


class BuilderConfig:
    def __init__(self) -> None:
        self._flags = {BuilderFlag.TF32}
        self._timings: TimingCache | None = None
        self._level = 3

    def set_flag(self, flag: BuilderFlag) -> None:
        self._flags.add(flag)

    def clear_flag(self, flag: BuilderFlag) -> None:
        self._flags.discard(flag)

    def get_flag(self, flag: BuilderFlag) -> bool:
        return flag in self._flags

    @property
    def builder_optimization_level(self) -> int:
        return self._level

    @builder_optimization_level.setter
    def builder_optimization_level(self, level: int) -> None:
        if not 0 <= level <= 5:
            raise ValueError(f"there is no level {level}")
        self._level = level

    def create_timing_cache(self, known: bytes) -> TimingCache:
        return TimingCache(known)

    def set_timing_cache(self, cache: TimingCache, ignore_mismatch: bool) -> bool:
        self._timings = cache
        return True

    def get_timing_cache(self) -> TimingCache | None:
        return self._timings


class Builder:
    def __init__(self, logger: ILogger) -> None:
        self._logger = logger

    def create_network(self, flags: int = 0) -> Network:
        if not flags & 1 << NetworkDefinitionCreationFlag.STRONGLY_TYPED:
            raise ValueError("the stand-in has strongly typed networks only")
        return Network()

    def create_builder_config(self) -> BuilderConfig:
        return BuilderConfig()

    def build_serialized_network(self, network: Network, config: BuilderConfig) -> bytes | None:
        if network.model is None or not network.model.graph.node:
            self._logger.log(ILogger.Severity.ERROR, "the network has no layers")
            return None
        timings = config.get_timing_cache()
        if timings is not None:
            names = {node.op_type for node in network.model.graph.node}
            timings.known = " ".join(sorted({*timings.known.decode().split(), *names})).encode()
        header = json.dumps(
            {
                "version": __version__,
                "tf32": config.get_flag(BuilderFlag.TF32),
                "level": config.builder_optimization_level,
            }
        ).encode()
        model = network.model.SerializeToString()
        return _MAGIC + struct.pack("<QQ", len(header), len(model)) + header + model


# ---- running ----


def _rounded(values: Any) -> Any:
    """Float32 values as tensor cores read them with TF32: 10 bits behind the point, to nearest."""
    if values.dtype != np.float32:
        return values
    bits = np.ascontiguousarray(values).view(np.uint32).astype(np.uint64)
    kept = ((bits + 0xFFF + ((bits >> 13) & 1)) & 0xFFFFE000).astype(np.uint32).view(np.float32)
    return np.where(np.isfinite(values), kept, values)


class LRN(OpRun):
    """Local response normalisation by its definition: the reference evaluation leaves out the last channel of a sum."""

    op_domain = ""

    def _run(self, x: Any, alpha: float, beta: float, bias: float, size: int) -> tuple[Any]:
        squares = x.astype(np.float32) ** 2
        sums = np.zeros_like(squares)
        for channel in range(x.shape[1]):
            begin, end = max(0, channel - (size - 1) // 2), channel + size // 2 + 1
            sums[:, channel] = squares[:, begin:end].sum(axis=1)
        return ((x / (bias + alpha / size * sums) ** beta).astype(x.dtype),)


class LogSoftmax(OpRun):
    """By differences to the largest value: the reference evaluation takes the logarithm of shares, which may be zero."""

    op_domain = ""

    def _run(self, x: Any, axis: int = -1) -> tuple[Any]:
        below = x.astype(np.float32) - x.astype(np.float32).max(axis=axis, keepdims=True)
        return ((below - np.log(np.exp(below).sum(axis=axis, keepdims=True))).astype(x.dtype),)


_PlainQuantizeLinear = load_op("", "QuantizeLinear", onnx.defs.onnx_opset_version())


class QuantizeLinear(_PlainQuantizeLinear):
    """Values far beyond the range are limited to it: the reference evaluation makes integers of them first."""

    op_domain = ""

    def _run(self, x: Any, scale: Any, *zero_point: Any, **attributes: Any) -> Any:
        most = np.asarray(1e6 * float(np.max(scale)), x.dtype)
        return super()._run(np.clip(x, -most, most), scale, *zero_point, **attributes)


def _product(op_type: str, rounds: bool) -> type[OpRun]:
    """Returns an operator of the reference evaluation that adds up in float32.

    Args:
        rounds: whether float32 factors, its first two arguments, are rounded.
    """
    domain, version = "", onnx.defs.onnx_opset_version()
    plain = load_op(domain, op_type, version)

    def run(self: Any, *args: Any, **attributes: Any) -> Any:
        dtype = args[0].dtype
        if dtype == np.float32:
            wide = [_rounded(arg) if rounds and i < 2 else arg for i, arg in enumerate(args)]
        else:
            wide = [arg.astype(np.float32) for arg in args]
        return tuple(result.astype(dtype) for result in plain._run(self, *wide, **attributes))

    return type(op_type, (plain,), {"_run": run, "op_domain": domain})


_PRODUCTS = ("Conv", "ConvTranspose", "Gemm", "MatMul")


@functools.cache
def _driver() -> ctypes.CDLL:
    """The stand-in for the driver, which this process has opened."""
    driver = ctypes.CDLL("libcuda.so.1")
    driver.standin_cuda_within.restype = ctypes.c_void_p
    driver.standin_cuda_within.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    driver.standin_cuda_call.restype = ctypes.c_bool
    driver.standin_cuda_call.argtypes = [ctypes.c_void_p, _Work, ctypes.c_void_p]
    driver.standin_cuda_is_captured.restype = ctypes.c_bool
    driver.standin_cuda_is_captured.argtypes = [ctypes.c_void_p]
    driver.standin_cuda_has_context.restype = ctypes.c_bool
    return driver


_Work = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_contexts: list[ExecutionContext] = []  # graphs do their works again whenever they like


class CudaEngine:
    def __init__(self, header: dict[str, Any], model: onnx.ModelProto, logger: ILogger) -> None:
        initial = {tensor.name for tensor in model.graph.initializer}
        self.inputs = [value for value in model.graph.input if value.name not in initial]
        self.outputs = list(model.graph.output)
        self._values = {value.name: value.type.tensor_type for value in [*self.inputs, *self.outputs]}
        new_ops = [LRN, LogSoftmax, QuantizeLinear, *(_product(one, rounds=header["tf32"]) for one in _PRODUCTS)]
        self.evaluator = onnx.reference.ReferenceEvaluator(model, new_ops=new_ops)
        self.logger = logger

    @property
    def num_io_tensors(self) -> int:
        return len(self._values)

    def get_tensor_name(self, index: int) -> str:
        return list(self._values)[index]

    def get_tensor_shape(self, name: str) -> tuple[int, ...]:
        return tuple(dim.dim_value for dim in self._values[name].shape.dim)

    def get_tensor_dtype(self, name: str) -> DataType:
        return _FROM_ONNX[self._values[name].elem_type]

    def bytes_of(self, name: str) -> int:
        return int(np.prod(self.get_tensor_shape(name), dtype=np.int64)) * self.get_tensor_dtype(name).value.itemsize

    def create_execution_context(self) -> ExecutionContext:
        return ExecutionContext(self)


class Runtime:
    def __init__(self, logger: ILogger) -> None:
        self._logger = logger

    def deserialize_cuda_engine(self, engine: bytes) -> CudaEngine | None:
        try:
            return self._read(engine)
        except (ValueError, struct.error, RuntimeError) as error:
            self._logger.log(ILogger.Severity.ERROR, str(error))
            return None

    def _read(self, engine: bytes) -> CudaEngine:
        if not engine.startswith(_MAGIC):
            raise ValueError("magic tag does not match")
        if not _driver().standin_cuda_has_context():
            raise RuntimeError("the thread has no context")
        rest = engine[len(_MAGIC) :]
        header_bytes, model_bytes = struct.unpack_from("<QQ", rest)
        if len(rest) != 16 + header_bytes + model_bytes:
            raise ValueError("the engine is cut off")
        header = json.loads(rest[16 : 16 + header_bytes])
        if header["version"] != __version__:
            raise ValueError("the engine was built by another version")
        return CudaEngine(header, onnx.load_model_from_string(rest[16 + header_bytes :]), self._logger)


class ExecutionContext:
    def __init__(self, engine: CudaEngine) -> None:
        self._engine = engine
        self._addresses: dict[str, int] = {}
        self._places: list[dict[str, int]] = []  # of works: each place of tensors that there was
        self._work = _Work(lambda number: self._compute(self._places[number or 0]))
        _contexts.append(self)

    def _fail(self, text: str) -> bool:
        self._engine.logger.log(ILogger.Severity.ERROR, text)
        return False

    def set_tensor_address(self, name: str, address: int) -> bool:
        if name not in [self._engine.get_tensor_name(i) for i in range(self._engine.num_io_tensors)]:
            return self._fail(f"there is no tensor '{name}'")
        if address % _ALIGNMENT != 0:
            return self._fail(f"the address of '{name}' is not aligned to {_ALIGNMENT} bytes")
        self._addresses[name] = address
        return True

    def execute_async_v3(self, stream: int) -> bool:
        driver = _driver()
        if not self._places and driver.standin_cuda_is_captured(stream):
            return self._fail("the first run cannot be captured")
        places: dict[str, int] = {}
        for i in range(self._engine.num_io_tensors):
            name = self._engine.get_tensor_name(i)
            if name not in self._addresses:
                return self._fail(f"'{name}' has no address")
            place = driver.standin_cuda_within(self._addresses[name], self._engine.bytes_of(name))
            if place is None:
                return self._fail(f"'{name}' is not in memory of the GPU")
            places[name] = place
        if places not in self._places:
            self._places.append(places)
        number = self._places.index(places)
        return bool(driver.standin_cuda_call(stream, self._work, number)) or self._fail("there is no such stream")

    def _array(self, name: str, place: int) -> Any:
        memory = (ctypes.c_byte * self._engine.bytes_of(name)).from_address(place)
        dtype = self._engine.get_tensor_dtype(name).value
        return np.frombuffer(memory, dtype).reshape(self._engine.get_tensor_shape(name))

    def _compute(self, places: dict[str, int]) -> None:
        feeds = {value.name: self._array(value.name, places[value.name]).copy() for value in self._engine.inputs}
        names = [value.name for value in self._engine.outputs]
        with np.errstate(all="ignore"):
            results = self._engine.evaluator.run(names, feeds)
        for name, result in zip(names, results, strict=True):
            target = self._array(name, places[name])
            result = np.asarray(result)
            if result.shape != target.shape or result.dtype != target.dtype:
                raise RuntimeError(f"'{name}' is {result.dtype} {result.shape}, not {target.dtype} {target.shape}")
            target[...] = result
