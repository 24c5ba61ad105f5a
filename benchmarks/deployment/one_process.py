#!/usr/bin/env python3
"""one_process.py: one process of an engine, as a user deploys it, for deployment.py.

    one_process.py ENGINE FILE INPUTS.npz [--threads 1] [--runs 300] [--outputs OUTPUTS.npz]

ENGINE is "ONNX Runtime" or "OpenVINO", and FILE the model; a line is printed as soon as the first result is there, and JSON at the
end: the median run, the peak of resident memory, and the private memory of another instance. For "Collage", FILE is a library that
`collage compile --emit shared` wrote, and only the last of these is printed.
"""

import argparse
import ctypes
import json
import re
import statistics
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

FURTHER = 8  # instances beside the first
ROUNDS = 20  # of runs at the same time
Arrays = dict[str, np.ndarray]


def peak_bytes() -> int:
    found = re.search(r"^VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1]) * 1024


def private_bytes() -> int:
    """Memory that no other process shares: what another instance takes from the machine."""
    text = Path("/proc/self/smaps_rollup").read_text()
    return sum(int(kilobytes) * 1024 for kilobytes in re.findall(r"^Private_(?:Clean|Dirty):\s+(\d+) kB", text, re.MULTILINE))


class OnnxRuntime:
    def __init__(self, arguments: argparse.Namespace, inputs: Arrays) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = arguments.threads
        self._session = onnxruntime.InferenceSession(arguments.file, options, providers=["CPUExecutionProvider"])
        self._inputs = inputs

    def run(self) -> Arrays:
        names = [one.name for one in self._session.get_outputs()]
        return dict(zip(names, self._session.run(None, self._inputs), strict=True))

    def further(self, count: int) -> list[Callable[[], Any]]:
        """A session serves many threads: another instance is another run of it at the same time."""
        return [self.run] * count


class OpenVino:
    def __init__(self, arguments: argparse.Namespace, inputs: Arrays) -> None:
        import openvino

        settings = {"INFERENCE_NUM_THREADS": str(arguments.threads), "PERFORMANCE_HINT": "LATENCY"}
        settings["INFERENCE_PRECISION_HINT"] = "f32"
        self._model = openvino.Core().compile_model(arguments.file, "CPU", settings)
        self._request = self._model.create_infer_request()
        self._inputs = inputs

    def run(self) -> Arrays:
        results = self._request.infer(self._inputs)
        return {port.get_any_name(): value for port, value in results.items()}

    def further(self, count: int) -> list[Callable[[], Any]]:
        requests = [self._model.create_infer_request() for _ in range(count)]
        return [lambda request=request: request.infer(self._inputs) for request in requests]


class Collage:
    """Instances of a library that holds a model, by the C API."""

    def __init__(self, arguments: argparse.Namespace, inputs: Arrays) -> None:
        self._library = ctypes.CDLL(str(Path(arguments.file).resolve()))
        self._inputs = inputs
        load = getattr(self._library, Path(arguments.file).stem.removeprefix("lib") + "_load")
        self._model = ctypes.c_void_p()
        self._check(load(ctypes.byref(self._model)))
        self._run = self._instance()

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

    def run(self) -> Any:
        return self._run()

    def further(self, count: int) -> list[Callable[[], Any]]:
        return [self._instance() for _ in range(count)]


def run_at_once(runs: list[Callable[[], Any]]) -> None:
    """Calls each in a thread of its own, some times; all begin together."""
    barrier = threading.Barrier(len(runs))

    def work(call: Callable[[], Any]) -> None:
        for _ in range(ROUNDS):
            barrier.wait()
            call()

    threads = [threading.Thread(target=work, args=(call,)) for call in runs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def instance_bytes(engine: Any) -> float:
    """Private memory by which each further instance grows the process."""
    run_at_once([engine.run])
    before = private_bytes()
    run_at_once([engine.run, *engine.further(FURTHER)])
    return (private_bytes() - before) / FURTHER


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine", choices=["ONNX Runtime", "OpenVINO", "Collage"])
    parser.add_argument("file")
    parser.add_argument("inputs")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--outputs")
    arguments = parser.parse_args()
    with np.load(arguments.inputs) as file:
        inputs = dict(file)
    if arguments.engine == "Collage":
        print(json.dumps({"instance_bytes": instance_bytes(Collage(arguments, inputs))}))
        return
    engine = (OnnxRuntime if arguments.engine == "ONNX Runtime" else OpenVino)(arguments, inputs)
    results = engine.run()
    print("first", flush=True)
    if arguments.outputs:
        np.savez(arguments.outputs, **results)
    times = []
    for _ in range(arguments.runs):
        started = time.perf_counter()
        engine.run()
        times.append(time.perf_counter() - started)
    said = {"p50_seconds": statistics.median(times), "peak_bytes": peak_bytes()}
    print(json.dumps(said | {"instance_bytes": instance_bytes(engine)}))


if __name__ == "__main__":
    main()
