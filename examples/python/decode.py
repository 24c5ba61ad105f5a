#!/usr/bin/env python3
"""Writes text token by token: the prompt in one run, then one token a run, with the keys and values of all earlier ones.

    decode.py [--model MODEL.onnx] [--prompt 16] [--tokens 32]

MODEL has the form that ONNX Runtime's generative tools write. Without one, a small Llama-like network with weights of 4 bits that
tools/models/decoder.py makes: they are random, and so is what it says. One executable has plans for the prompt and for one token,
and kernels for all other lengths. Keys and values have room for a fixed number of tokens; the mask says how many are there.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import collage

ROOT = Path(__file__).resolve().parents[2]
ROOM = 512  # tokens, the prompt's included
SMALL = "--layers 4 --width 256 --heads 8 --key-heads 2 --inner 512 --words 1000 --bits 4".split()


class Decoder:
    """An executable, and the keys and values of the tokens that it has seen."""

    def __init__(self, exe: collage.Executable) -> None:
        self._exe = exe
        past = [port for port in exe.inputs if port.name.startswith("past_key_values.")]
        self._past = {port.name: np.zeros(port.shape, port.dtype) for port in past}
        self._seen = 0

    def __call__(self, tokens: list[int]) -> int:
        """Returns the likeliest token behind those seen before and `tokens`."""
        self._seen += len(tokens)
        mask = (np.arange(ROOM) < self._seen).astype("int64")[None]
        inputs = {"input_ids": np.array([tokens], "int64"), "attention_mask": mask}
        results = self._exe.run(inputs | self._past)
        self._past = {name: results[name.replace("past_key_values", "present")] for name in self._past}
        return int(results["logits"][0, -1].argmax())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--prompt", type=int, default=16, help="tokens of the prompt")
    parser.add_argument("--tokens", type=int, default=32, help="tokens to write")
    parser.add_argument("--budget", default="20s", help="for compiling")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model = arguments.model or Path(folder) / "decoder.onnx"
        if not arguments.model:
            subprocess.run([sys.executable, ROOT / "tools/models/decoder.py", model, *SMALL], check=True)
        exe = collage.compile(
            model,
            threads=1,
            budget=arguments.budget,
            dims={"batch_size": 1, "past_sequence_length": ROOM, "total_sequence_length": ROOM},
            tune_at={"sequence_length": [1, arguments.prompt]},
        )
    decoder = Decoder(exe)
    started = time.perf_counter()
    written = [decoder(list(range(1, arguments.prompt + 1)))]
    prompted = time.perf_counter()
    while len(written) < arguments.tokens:
        written.append(decoder([written[-1]]))
    took = time.perf_counter() - prompted
    print("tokens", *written)
    print(
        f"prompt of {arguments.prompt} in {1e3 * (prompted - started):.1f} ms, then {(len(written) - 1) / took:.0f} tokens/s"
    )


if __name__ == "__main__":
    main()
