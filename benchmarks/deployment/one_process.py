#!/usr/bin/env python3
"""one_process.py: one process of an engine, as a user deploys it, for deployment.py.

    one_process.py ENGINE FILE INPUTS.npz [--threads 1] [--runs 300] [--outputs OUTPUTS.npz] [--instances COUNT]

ENGINE is "ONNX Runtime" or "OpenVINO", and FILE the model; a line is printed as soon as the first result is there, and JSON at the
end: the median run, and the peak of resident memory. With --instances, so many instances run at the same time, and JSON has the
private memory of the process. There ENGINE may be "Collage", and FILE a library that `collage compile --emit shared` wrote.
"""

import argparse
import ctypes
import json
import re
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

ROUNDS = 50  # of runs at the same time
Arrays = dict[str, np.ndarray]


def peak_bytes() -> int:
    found = re.search(r"^VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1]) * 1024


def private_bytes() -> int:
    """Memory that no other process shares."""
    text = Path("/proc/self/smaps_rollup").read_text()
    return sum(int(kilobytes) * 1024 for kilobytes in re.findall(r"^Private_(?:Clean|Dirty):\s+(\d+) kB", text, re.MULTILINE))


def in_threads(pool: ThreadPoolExecutor, runs: list[Callable[[], Any]]) -> None:
    """Calls each in a thread of the pool's."""
    for done in [pool.submit(run) for run in runs]:
        done.result()


class OnnxRuntime:
    """A session serves many threads: an instance is a run of it."""

    def __init__(self, arguments: argparse.Namespace, inputs: Arrays) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = arguments.threads
        self._count = arguments.instances or 1
        self._pool = ThreadPoolExecutor(self._count)
        self._session = onnxruntime.InferenceSession(arguments.file, options, providers=["CPUExecutionProvider"])
        self._inputs = inputs

    def run(self) -> Arrays:
        names = [one.name for one in self._session.get_outputs()]
        return dict(zip(names, self._session.run(None, self._inputs), strict=True))

    def run_at_once(self) -> None:
        in_threads(self._pool, [self.run] * self._count)


class OpenVino:
    """Streams compute at the same time: an instance is one of them, with a request."""

    def __init__(self, arguments: argparse.Namespace, inputs: Arrays) -> None:
        import openvino

        count = arguments.instances or 1
        settings = {"INFERENCE_NUM_THREADS": str(count * arguments.threads), "INFERENCE_PRECISION_HINT": "f32"}
        settings |= {"PERFORMANCE_HINT": "LATENCY"} if count == 1 else {"NUM_STREAMS": str(count)}
        model = openvino.Core().compile_model(arguments.file, "CPU", settings)
        streams = int(model.get_property("NUM_STREAMS"))
        if streams != count:
            raise RuntimeError(f"OpenVINO made {streams} streams of {count}: this process has too few processors")
        self._requests = [model.create_infer_request() for _ in range(count)]
        self._inputs = inputs

    def run(self) -> Arrays:
        return {port.get_any_name(): value for port, value in self._requests[0].infer(self._inputs).items()}

    def run_at_once(self) -> None:
        for request in self._requests:
            request.start_async(self._inputs)
        for request in self._requests:
            request.wait()


class Collage:
    """Instances of a library that holds a model, by the C API."""

    def __init__(self, arguments: argparse.Namespace, inputs: Arrays) -> None:
        self._library = ctypes.CDLL(str(Path(arguments.file).resolve()))
        self._inputs = inputs
        load = getattr(self._library, Path(arguments.file).stem.removeprefix("lib") + "_load")
        self._model = ctypes.c_void_p()
        self._check(load(ctypes.byref(self._model)))
        self._runs = [self._instance() for _ in range(arguments.instances)]
        self._pool = ThreadPoolExecutor(len(self._runs))

    def _check(self, status: int) -> None:
        if status != 0:
            name = self._library.collage_status_name
            name.restype = ctypes.c_char_p
            raise RuntimeError(f"Collage's C API: {name(status).decode()}")

    def _instance(self) -> Callable[[], Any]:
        instance = ctypes.c_void_p()
        self._check(self._library.collage_instance_create(self._model, ctypes.byref(instance)))
        for name, array in self._inputs.items():
            index = ctypes.c_size_t()
            self._check(self._library.collage_executable_find_input(self._model, name.encode(), ctypes.byref(index)))
            data = array.ctypes.data_as(ctypes.c_void_p)
            size = ctypes.c_size_t(array.nbytes)
            self._check(self._library.collage_instance_copy_input(instance, index, data, size))
        return lambda: self._check(self._library.collage_instance_run(instance))

    def run_at_once(self) -> None:
        in_threads(self._pool, self._runs)


ENGINES: dict[str, Callable[[argparse.Namespace, Arrays], Any]] = {
    "ONNX Runtime": OnnxRuntime,
    "OpenVINO": OpenVino,
    "Collage": Collage,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine", choices=list(ENGINES))
    parser.add_argument("file")
    parser.add_argument("inputs")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--outputs")
    parser.add_argument("--instances", type=int, default=0, metavar="COUNT")
    arguments = parser.parse_args()
    with np.load(arguments.inputs) as file:
        inputs = dict(file)
    engine = ENGINES[arguments.engine](arguments, inputs)
    if arguments.instances:
        for _ in range(ROUNDS):
            engine.run_at_once()
        print(json.dumps({"private_bytes": private_bytes()}))
        return
    results = engine.run()
    print("first", flush=True)
    if arguments.outputs:
        np.savez(arguments.outputs, **results)
    times = []
    for _ in range(arguments.runs):
        started = time.perf_counter()
        engine.run()
        times.append(time.perf_counter() - started)
    print(json.dumps({"p50_seconds": statistics.median(times), "peak_bytes": peak_bytes()}))


if __name__ == "__main__":
    main()
