#!/usr/bin/env python3
"""Serves a model over HTTP: loaded once, answered by many threads at once, replaced without a pause.

    service.py MODEL.clg [--port 8000]
    service.py MODEL.clg --measure 5 [--clients 4] [--beside MODEL.onnx]

    GET  /health   200 and what is served
    POST /run      an .npz with the inputs by name; answers with an .npz of the outputs
    POST /reload   loads the file again, as after a new compilation; requests that are running keep the old one

--measure serves this process instead: so many clients ask for so many seconds, and requests per second are printed, beside those of
ONNX Runtime on the same model if it is given. Compile with threads=1: requests then run side by side.
"""

import argparse
import io
import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

import collage


class Service:
    """A model that can be exchanged while it is used."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.reload()

    def reload(self) -> None:
        self._exe = collage.load(self._path)  # those who run the old one hold on to it

    def run(self, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return self._exe.run(inputs)

    def ports(self) -> dict[str, Any]:
        exe = self._exe
        return {
            "model": self._path,
            "inputs": [str(port) for port in exe.inputs],
            "outputs": [str(port) for port in exe.outputs],
        }

    def random_inputs(self) -> dict[str, np.ndarray]:
        random = np.random.default_rng(0)
        return {port.name: random.random(port.shape).astype(port.dtype) for port in self._exe.inputs}


def handler_for(service: Service) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def answer(self, code: int, body: bytes, kind: str = "application/json") -> None:
            self.send_response(code)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def fail(self, code: int, text: str) -> None:
            self.answer(code, json.dumps({"error": text}).encode())

        def do_GET(self) -> None:
            if self.path != "/health":
                return self.fail(404, f"there is no {self.path}")
            self.answer(200, json.dumps(service.ports()).encode())

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            try:
                if self.path == "/reload":
                    service.reload()
                    return self.answer(200, b"{}")
                if self.path != "/run":
                    return self.fail(404, f"there is no {self.path}")
                with np.load(io.BytesIO(body)) as arrays:
                    outputs = service.run(dict(arrays))
            except (collage.Error, ValueError, OSError) as error:
                return self.fail(400, str(error))
            result = io.BytesIO()
            np.savez(result, **outputs)
            self.answer(200, result.getvalue(), "application/octet-stream")

        def log_message(self, *_: Any) -> None:
            pass

    return Handler


def requests_per_second(run: Callable[[], object], clients: int, seconds: float) -> float:
    """Returns how many runs a second `clients` threads together have."""
    counts = [0] * clients
    end = time.perf_counter() + seconds

    def ask(client: int) -> None:
        while time.perf_counter() < end:
            run()
            counts[client] += 1

    threads = [threading.Thread(target=ask, args=(client,)) for client in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / seconds


def measure(service: Service, arguments: argparse.Namespace) -> None:
    inputs = service.random_inputs()
    contenders = {"Collage": lambda: service.run(inputs)}
    if arguments.beside:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(arguments.beside, options, providers=["CPUExecutionProvider"])
        contenders["ONNX Runtime"] = lambda: session.run(None, inputs)
    for name, run in contenders.items():
        run()
        rate = requests_per_second(run, arguments.clients, arguments.measure)
        print(f"{name}: {rate:.0f} requests/s, {arguments.clients} clients")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="an executable (.clg)")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--measure", type=float, metavar="SECONDS")
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--beside", metavar="MODEL.onnx")
    arguments = parser.parse_args()
    service = Service(arguments.model)
    if arguments.measure:
        return measure(service, arguments)
    server = ThreadingHTTPServer(("127.0.0.1", arguments.port), handler_for(service))
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
