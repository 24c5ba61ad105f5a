#!/usr/bin/env python3
"""decoding.py: times a text model that decodes token by token, beside ONNX Runtime on the same file.

    .venv/bin/python benchmarks/decoding.py [--bits 4] [--layers 24] [--threads 1] [--prompt 128] [--tokens 64] [--rounds 3] [--out FILE]

The model is that of tools/models/decoder.py, with a buffer for all tokens. Collage compiles plans for the prompt and for single
tokens, with data as floats and, for packed weights, rounded to 8 bits (`--precision any --max-error 0.05`). ONNX Runtime writes
keys and values into the buffer in place, with products as the file says and with `accuracy_level` 4, which rounds data to 8 bits as
well. Programs take turns, --rounds times each; a row has the medians of all rounds, and the bytes of weights that a token reads by
its time, as a share of what `bench_machine` reads from memory. Nothing else should run meanwhile.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEADER = (
    "| weights | program | threads | prompt tokens/s | token | tokens/s | to ONNX Runtime | of what memory gives |\n"
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


def run_onnxruntime(arguments: argparse.Namespace) -> None:
    """Prints seconds of the prompt and of the median token, as JSON: the process that --peer makes."""
    import numpy as np
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = arguments.threads
    session = onnxruntime.InferenceSession(arguments.peer, options, providers=["CPUExecutionProvider"])
    room = arguments.prompt + arguments.tokens
    pasts = [one for one in session.get_inputs() if one.name.startswith("past")]
    zeros = np.zeros((1, pasts[0].shape[1], room, pasts[0].shape[3]), np.float32)
    buffers = {one.name: onnxruntime.OrtValue.ortvalue_from_numpy(zeros) for one in pasts}

    def step(tokens: list[int], seen: int) -> tuple[float, int]:
        binding = session.io_binding()
        binding.bind_cpu_input("input_ids", np.array([tokens]))
        binding.bind_cpu_input("attention_mask", (np.arange(room) < seen + len(tokens)).astype(np.int64)[None])
        for name, buffer in buffers.items():
            binding.bind_ortvalue_input(name, buffer)
            binding.bind_ortvalue_output(name.replace("past_key_values", "present"), buffer)
        binding.bind_output("logits", "cpu")
        start = time.perf_counter()
        session.run_with_iobinding(binding)
        seconds = time.perf_counter() - start
        return seconds, int(binding.copy_outputs_to_cpu()[0][0, -1].argmax())

    prompts = [step([i * 7 % 100 for i in range(arguments.prompt)], 0) for _ in range(4)]
    token, times = prompts[-1][1], []
    for i in range(arguments.tokens):
        seconds, token = step([token], arguments.prompt + i)
        times.append(seconds)
    first = statistics.median(seconds for seconds, _ in prompts[1:])
    print(json.dumps({"first_token_seconds": first, "token_seconds": statistics.median(times)}))


def compile_both(arguments: argparse.Namespace, collage: str, model: Path, folder: Path) -> dict[str, Path]:
    """Executables by their names in the table."""
    room = str(arguments.prompt + arguments.tokens)
    sizes = [
        f"--dim={name}={size}"
        for name, size in (("batch_size", "1"), ("past_sequence_length", room), ("total_sequence_length", room))
    ]
    common = [collage, "compile", str(model), *sizes, f"--tune-at=sequence_length=1,{arguments.prompt}", "--quiet"]
    common += ["--threads", str(arguments.threads), "--toolchains", "native", "--budget", arguments.budget]
    variants = {"Collage, floats": []}
    if arguments.bits < 32:
        variants["Collage, 8-bit data"] = ["--precision", "any", "--max-error", "0.05"]
    files = {}
    for name, more in variants.items():
        files[name] = folder / f"{len(files)}.clg"
        run([*common, *more, "-o", str(files[name]), "--database", str(folder / "tuning.db")])
    return files


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
    parser.add_argument("--peer", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.peer:
        run_onnxruntime(arguments)
        return 0
    sizes = [f"--{name}={getattr(arguments, name)}" for name in ("threads", "prompt", "tokens")]
    collage = str(Path(arguments.build) / "bin/collage")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = folder / "decoder.onnx"
        maker = str(ROOT / "tools/models/decoder.py")
        run([sys.executable, maker, str(model), f"--layers={arguments.layers}", f"--bits={arguments.bits}"])
        files = compile_both(arguments, collage, model, folder)
        peers = {"ONNX Runtime": model}
        if arguments.bits < 32:
            peers["ONNX Runtime, 8-bit data"] = with_accuracy_level(model, 4)
        times: dict[str, list[dict[str, float]]] = {one: [] for one in [*files, *peers]}
        decode = ["--decode", str(arguments.tokens), "--prompt", str(arguments.prompt), "--json"]
        for _ in range(arguments.rounds):
            for one, file in files.items():
                times[one] += json.loads(run([collage, "benchmark", str(file), *decode]))["decoders"]
            for one, file in peers.items():
                times[one].append(json.loads(run([sys.executable, __file__, "--peer", str(file), *sizes])))
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
