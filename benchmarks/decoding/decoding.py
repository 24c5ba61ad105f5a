#!/usr/bin/env python3
"""decoding.py: times a text model that decodes token by token, beside other engines with the same weights.

    .venv/bin/python benchmarks/decoding/decoding.py [--bits 4] [--layers 24] [--threads 1] [--prompt 128] [--tokens 64]
                                                     [--rounds 3] [--out FILE]

The model is that of tools/models/decoder.py, with a buffer for 2048 tokens. Collage compiles plans for the prompt and for single
tokens, with data as floats and, by `--precision any --max-error 0.1`, rounded to 8 bits where weights are packed, else in
bfloat16. ONNX Runtime writes keys and values into the buffer in place, with products as the file says and with `accuracy_level` 4,
which rounds data to 8 bits as well; so does ONNX Runtime GenAI. OpenVINO keeps them as states; by default
it computes in bfloat16, and rounds data of products to 8 bits where that is faster. llama.cpp reads the same weights as GGUF. What
is not installed (`./setup engines`) has no row. Programs take turns, --rounds times each; a row has the medians of all rounds, and
the bytes of weights that a token reads by its time, as a share of what `bench_machine` reads from memory. Nothing else
should run meanwhile.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from peers import FORMATS, ROOM, prompt_of, read_stateful, run_genai, run_llama_cpp, write_gguf

ROOT = Path(__file__).resolve().parent.parent.parent
HEADER = (
    "| weights | program | threads | prompt tokens/s | token | tokens/s | to the fastest other | of what memory gives |\n"
    "| --- | --- | --- | --- | --- | --- | --- | --- |"
)


def run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr[-2000:]}")
    return done.stdout


def with_accuracy_level(model: Path, level: int) -> Path:
    """Writes the model with the level for all products; returns the file."""
    import onnx

    changed = onnx.load(model)
    for node in changed.graph.node:
        if node.op_type == "MatMulNBits":
            node.attribute.append(onnx.helper.make_attribute("accuracy_level", level))
    path = model.with_stem(f"{model.stem}_level{level}")
    onnx.save(changed, path)
    return path


def time_steps(arguments: argparse.Namespace, step: Callable[[list[int], int], Any], start: Callable[[], None]) -> None:
    """Prints seconds of the prompt and of the median token, as JSON. step(tokens, seen) returns the scores of the last token."""

    def timed(tokens: list[int], seen: int) -> tuple[float, int]:
        begin = time.perf_counter()
        scores = step(tokens, seen)
        return time.perf_counter() - begin, int(scores.argmax())

    prompts = []
    for _ in range(4):
        start()
        prompts.append(timed(prompt_of(arguments), 0))
    token, times = prompts[-1][1], []
    for i in range(arguments.tokens):
        seconds, token = timed([token], arguments.prompt + i)
        times.append(seconds)
    first = statistics.median(seconds for seconds, _ in prompts[1:])
    print(json.dumps({"first_token_seconds": first, "token_seconds": statistics.median(times)}))


def run_onnxruntime(arguments: argparse.Namespace, model: str) -> None:
    """Keys and values are one buffer, which each run writes in place."""
    import numpy as np
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = arguments.threads
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    room = ROOM
    pasts = [one for one in session.get_inputs() if one.name.startswith("past")]
    zeros = np.zeros((1, pasts[0].shape[1], room, pasts[0].shape[3]), np.float32)
    buffers = {one.name: onnxruntime.OrtValue.ortvalue_from_numpy(zeros) for one in pasts}

    def step(tokens: list[int], seen: int) -> Any:
        binding = session.io_binding()
        binding.bind_cpu_input("input_ids", np.array([tokens]))
        binding.bind_cpu_input("attention_mask", (np.arange(room) < seen + len(tokens)).astype(np.int64)[None])
        for name, buffer in buffers.items():
            binding.bind_ortvalue_input(name, buffer)
            binding.bind_ortvalue_output(name.replace("past_key_values", "present"), buffer)
        binding.bind_output("logits", "cpu")
        session.run_with_iobinding(binding)
        return binding.copy_outputs_to_cpu()[0][0, -1]

    time_steps(arguments, step, lambda: None)


def run_openvino(arguments: argparse.Namespace, model: str, settings: dict[str, str]) -> None:
    """Keys and values are states of the model, which OpenVINO keeps itself."""
    import numpy as np
    import openvino

    settings = {"INFERENCE_NUM_THREADS": str(arguments.threads), "PERFORMANCE_HINT": "LATENCY", **settings}
    request = openvino.Core().compile_model(read_stateful(model), "CPU", settings).create_infer_request()

    def step(tokens: list[int], seen: int) -> Any:
        inputs = {"input_ids": np.array([tokens]), "attention_mask": np.ones((1, seen + len(tokens)), np.int64)}
        return request.infer(inputs)["logits"][0, -1]

    time_steps(arguments, step, request.reset_state)


def run_peer(arguments: argparse.Namespace) -> None:
    """Times the other engine, in the process that --peer makes."""
    engine, model = arguments.peer
    exact = {"INFERENCE_PRECISION_HINT": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0"}
    if engine == "llama.cpp":
        run_llama_cpp(arguments, model)
    elif engine.startswith("ONNX Runtime GenAI"):
        run_genai(arguments, model)
    elif engine.startswith("ONNX Runtime"):
        run_onnxruntime(arguments, model)
    else:
        run_openvino(arguments, model, exact if engine == "OpenVINO, floats" else {})


def compile_both(arguments: argparse.Namespace, collage: str, model: Path, folder: Path) -> dict[str, Path]:
    """Executables by their names in the table."""
    room = str(ROOM)
    sizes = [
        f"--dim={name}={size}"
        for name, size in (("batch_size", "1"), ("past_sequence_length", room), ("total_sequence_length", room))
    ]
    common = [collage, "compile", str(model), *sizes, f"--tune-at=sequence_length=1,{arguments.prompt}", "--quiet"]
    common += ["--threads", str(arguments.threads), "--toolchains", "native", "--budget", arguments.budget]
    lower = "Collage, 8-bit data" if arguments.bits < 32 else "Collage, bfloat16"
    variants = {"Collage, floats": [], lower: ["--precision", "any", "--max-error", "0.1"]}
    files = {}
    for name, more in variants.items():
        files[name] = folder / f"{len(files)}.clg"
        run([*common, *more, "-o", str(files[name]), "--database", str(folder / "tuning.db")])
    return files


def peers_of(model: Path, bits: int) -> dict[str, Path]:
    """Files by the names of the other programs."""
    peers = {"ONNX Runtime, floats": model, "OpenVINO, floats": model, "OpenVINO, its default": model}
    rounded = with_accuracy_level(model, 4) if bits < 32 else None
    if rounded:
        peers["ONNX Runtime, 8-bit data"] = rounded
    if find_spec("onnxruntime_genai"):
        peers["ONNX Runtime GenAI, floats"] = model
        if rounded:
            peers["ONNX Runtime GenAI, 8-bit data"] = rounded
    if bits in FORMATS and find_spec("xllamacpp") and find_spec("gguf"):
        peers["llama.cpp"] = write_gguf(model, bits)
    return peers


def weight_bytes(arguments: argparse.Namespace, model: Path) -> int:
    """Bytes of the weights that each token reads: all but the table of words."""
    import onnx

    graph = onnx.load(model, load_external_data=True).graph
    return sum(len(one.raw_data) for one in graph.initializer if one.name != "words")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in {"bits": 4, "layers": 24, "threads": 1, "prompt": 128, "tokens": 64, "rounds": 3}.items():
        parser.add_argument("--" + name, type=int, default=default)
    parser.add_argument("--budget", default="60s", help="of each of Collage's compilations")
    parser.add_argument("--build", default=str(ROOT / "build/dev"))
    parser.add_argument("--out", help="also append the rows to this file")
    parser.add_argument("--peer", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.peer:
        run_peer(arguments)
        return 0
    sizes = [f"--{name}={getattr(arguments, name)}" for name in ("threads", "prompt", "tokens")]
    collage = str(Path(arguments.build) / "bin/collage")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = folder / "decoder.onnx"
        maker = str(ROOT / "tools/models/decoder.py")
        run([sys.executable, maker, str(model), f"--layers={arguments.layers}", f"--bits={arguments.bits}"])
        files = compile_both(arguments, collage, model, folder)
        peers = peers_of(model, arguments.bits)
        times: dict[str, list[dict[str, float]]] = {one: [] for one in [*files, *peers]}
        decode = ["--decode", str(arguments.tokens), "--prompt", str(arguments.prompt), "--json"]
        for _ in range(arguments.rounds):
            for one, file in files.items():
                times[one] += json.loads(run([collage, "benchmark", str(file), *decode]))["decoders"]
            for one, file in peers.items():
                printed = run([sys.executable, __file__, "--peer", one, str(file), *sizes])
                times[one].append(json.loads(printed.splitlines()[-1]))
        machine = json.loads(run([str(Path(arguments.build) / "bin/bench_machine"), str(arguments.threads)]))
        rate = machine["memory_bytes_per_second"]
        needed = weight_bytes(arguments, model)

    def median(one: str, key: str) -> float:
        return statistics.median(row[key] for row in times[one])

    best = min(median(one, "token_seconds") for one in peers)
    rows = []
    for one in times:
        token = median(one, "token_seconds")
        rows.append(
            f"| {arguments.bits} bits | {one} | {arguments.threads} | {arguments.prompt / median(one, 'first_token_seconds'):.1f} "
            f"| {token * 1e3:.2f} ms | {1 / token:.1f} | {token / best:.3f} | {needed / token / rate:.2f} |"
        )
    print("\n".join([HEADER, *rows]))
    if arguments.out:
        with open(arguments.out, "a") as out:
            print("\n".join(rows), file=out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
