#!/usr/bin/env python3
"""Writes the standard models that Collage is tested and measured on, without downloading anything.

    make_models.py                    every model at its published size  (about 3 GB, minutes)
    make_models.py --small            reduced width, depth and resolution (under 40 MB, seconds; for CI)
    make_models.py resnet50 gpt2      only the named ones
    make_models.py --list             names, and nothing else

Models go to --out, else $COLLAGE_MODELS, else ~/.cache/collage/models, in a folder `full` or `small`. Each one is a
pair: NAME.onnx (opset 17, static shapes, batch 1, seeded random weights) and NAME.npz (one sample: arrays `in.X` for
every graph input X and `out.Y` for every output Y, computed with --reference). Besides the float32 models of `zoo.py`
there are NAME_fp16 (weights and activations float16; its reference is computed from the float32 arithmetic that the
CPU kernels use) and NAME_int8 (QDQ, statically quantised per channel with onnxruntime.quantization).

The same versions of numpy and onnx give the same bytes in NAME.onnx (not for int8, whose scales come from running the
model). Reference outputs agree between machines to rounding only: compare with a tolerance (see `tolerance` below).

Needs: numpy, onnx, and onnxruntime for the references and for int8.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

import numpy as np
import onnx

sys.path.insert(0, str(Path(__file__).resolve().parent))
import zoo
from net import Net

# Largest allowed |actual - expected| relative to max |expected|, by model suffix; float32 otherwise.
TOLERANCE = {"_fp16": 2e-2, "_int8": 5e-2, "": 1e-4}


def tolerance(name: str) -> float:
    return next(t for suffix, t in TOLERANCE.items() if name.endswith(suffix))


def names() -> list[str]:
    return [*zoo.MODELS, *(n + "_fp16" for n in zoo.FLOAT16), *(n + "_int8" for n in zoo.INT8)]


def build(name: str, full: bool) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """The model and its sample input."""
    base, _, suffix = name.rpartition("_") if name.endswith(("_fp16", "_int8")) else (name, "", "")
    net = Net(base, np.float16 if suffix == "fp16" else np.float32)
    zoo.MODELS[base](net, zoo.Scale(full))
    model = net.model()
    return (quantise(model) if suffix == "int8" else model), net.feeds


def quantise(model: onnx.ModelProto, samples: int = 4) -> onnx.ModelProto:
    """QDQ int8 (per-channel weights), calibrated on seeded random inputs."""
    import tempfile

    from onnxruntime import quantization
    from onnxruntime.quantization.shape_inference import quant_pre_process

    rng = np.random.default_rng(0)
    inputs = [(i.name, [d.dim_value for d in i.type.tensor_type.shape.dim]) for i in model.graph.input]

    class Reader(quantization.CalibrationDataReader):
        left = samples

        def get_next(self):
            self.left -= 1
            return {n: rng.standard_normal(s, dtype=np.float32) for n, s in inputs} if self.left >= 0 else None

    with tempfile.TemporaryDirectory() as folder:
        source, ready, target = (os.path.join(folder, f) for f in ("source.onnx", "ready.onnx", "target.onnx"))
        onnx.save(model, source)
        quant_pre_process(source, ready, skip_symbolic_shape=True)
        quantization.quantize_static(ready, target, Reader(), quant_format=quantization.QuantFormat.QDQ,
                                     per_channel=True, activation_type=quantization.QuantType.QUInt8,
                                     weight_type=quantization.QuantType.QInt8)
        result = onnx.load(target)
    return onnx.shape_inference.infer_shapes(result)


def reference(path: Path, feeds: dict[str, np.ndarray], how: str) -> dict[str, np.ndarray]:
    if how == "onnx":
        from onnx.reference import ReferenceEvaluator
        session = ReferenceEvaluator(str(path))
        outputs = [o.name for o in onnx.load(path).graph.output]
    else:
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        # Without it 8-bit products overflow on processors that have AVX2 but not VNNI.
        options.add_session_config_entry("session.x64quantprecision", "1")
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        outputs = [o.name for o in session.get_outputs()]
    return dict(zip(outputs, session.run(None, feeds)))


def write(name: str, folder: Path, full: bool, how: str) -> str:
    """Writes NAME.onnx and NAME.npz; returns a line about them."""
    model, feeds = build(name, full)
    path = folder / f"{name}.onnx"
    temporary = path.with_suffix(".part")
    onnx.save(model, temporary)
    outputs = reference(temporary, feeds, how)
    for output, array in outputs.items():
        if not np.isfinite(array).all():
            raise ValueError(f"{name}: output {output} is not finite")
    np.savez(path.with_suffix(".npz"), **{f"in.{k}": v for k, v in feeds.items()},
             **{f"out.{k}": v for k, v in outputs.items()})
    temporary.replace(path)  # last, so that a model file that exists is complete
    spread = ", ".join(f"{k}{list(v.shape)} std {v.astype(np.float32).std():.2g}" for k, v in outputs.items())
    return f"{path.stat().st_size / 1e6:8.1f} MB  {len(model.graph.node):5d} nodes  {spread}"


def default_folder() -> Path:
    return Path(os.environ.get("COLLAGE_MODELS") or Path.home() / ".cache" / "collage" / "models")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help="models to write; all of them if none is given")
    parser.add_argument("--small", action="store_true", help="reduced sizes for CI")
    parser.add_argument("--out", type=Path, default=default_folder(), help="parent folder (default: %(default)s)")
    parser.add_argument("--reference", choices=("onnxruntime", "onnx"), default="onnxruntime",
                        help="what computes the reference outputs")
    parser.add_argument("--force", action="store_true", help="rewrite models that exist")
    parser.add_argument("--list", action="store_true", help="print the names")
    args = parser.parse_args()
    if args.list:
        print("\n".join(names()))
        return 0
    if unknown := set(args.names) - set(names()):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; see --list")
    folder = args.out / ("small" if args.small else "full")
    folder.mkdir(parents=True, exist_ok=True)
    for name in args.names or names():
        if not args.force and (folder / f"{name}.onnx").exists() and (folder / f"{name}.npz").exists():
            print(f"{name:18s} exists")
            continue
        started = time.time()
        line = write(name, folder, not args.small, args.reference)
        print(f"{name:18s} {line}  ({time.time() - started:.1f} s)", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
