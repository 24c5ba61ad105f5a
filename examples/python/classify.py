#!/usr/bin/env python3
"""Classifies a picture: compiles a network for this machine the first time, and loads it from then on.

    classify.py [--model MODEL.onnx] [--picture PICTURE.npy] [--top 5]

Without a model: MobileNetV2 as ./setup test makes it, with random weights, so that its classes mean nothing. PICTURE is an array
[3, H, W] of the size that the model takes, as it was trained; without one, a random picture.
"""

import argparse
import os
from pathlib import Path

import numpy as np

import collage

MODELS = Path(os.environ.get("COLLAGE_MODELS", Path.home() / ".cache/collage/models"))


def executable_for(model: Path, budget: str) -> collage.Executable:
    """Returns the executable of `model`, which lies in the current folder once it has been compiled."""
    compiled = Path(model.stem + ".clg")
    if compiled.exists() and compiled.stat().st_mtime > model.stat().st_mtime:
        return collage.load(compiled)
    return collage.compile(model, compiled, threads=1, budget=budget, progress=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=MODELS / "small/mobilenet_v2.onnx")
    parser.add_argument("--picture", type=Path)
    parser.add_argument("--top", type=int, default=5)
    parser.add_argument("--budget", default="10s", help="for compiling")
    arguments = parser.parse_args()
    exe = executable_for(arguments.model, arguments.budget)
    (port,) = exe.inputs
    if arguments.picture:
        picture = np.load(arguments.picture).astype(port.dtype).reshape(port.shape)
    else:
        picture = np.random.default_rng(0).standard_normal(port.shape).astype(port.dtype)
    scores = exe(picture)[0]
    probabilities = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
    for place in np.argsort(-probabilities)[: arguments.top]:
        print(f"class {place}: {100 * probabilities[place]:.2f} %")
    times = exe.benchmark(seconds=0.5)
    print(f"{1e3 * float(np.median(times)):.3f} ms a picture, on one thread")


if __name__ == "__main__":
    main()
