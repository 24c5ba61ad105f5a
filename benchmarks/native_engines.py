#!/usr/bin/env python3
"""native_engines.py: times native kernels alone, without search, beside OpenVINO's and ONNX Runtime's own APIs.

    benchmarks/native_engines.py [--threads 1] [--seconds 2] [--build build/dev] MODEL…

MODEL is a name, pattern or folder as for whole_models.py. For each one it runs, pinned to one processor for one thread:

    collage compile --partition-for native --estimator analytic
    bench_openvino_peer, bench_onnxruntime_peer     the executable and each engine on the ONNX file, interleaved

and prints a row of a Markdown table: medians, their ratios and those of minima, and the largest absolute difference between
the last outputs of Collage and ONNX Runtime. Below 1, Collage is faster. Nothing else should run meanwhile.
"""

import argparse
import re
import sys
from pathlib import Path

from whole_models import print_rows, run, setting_of

HEADER = (
    "| model | Collage | OpenVINO | ratio to OpenVINO | ratio of minima | Collage, beside ONNX Runtime | ONNX Runtime "
    "| ratio to ONNX Runtime | ratio of minima to ONNX Runtime | largest error |\n"
    "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
)
LINE = re.compile(
    r"collage ([0-9.]+) ms [^,]*, [A-Za-z ]+ ([0-9.]+) ms .*ratio of p50 ([0-9.]+), of minima ([0-9.]+).*difference ([0-9.e+-]+)"
)


def row(name: str, arguments: argparse.Namespace, folder: Path) -> str:
    build, collage, model, shapes, pinned = setting_of(name, arguments)
    executable = folder / "model.clg"
    alone = ["--partition-for", "native", "--estimator", "analytic", "--threads", str(arguments.threads), "--quiet"]
    run([str(collage), "compile", f"{model}.onnx", "-o", str(executable), *alone, *shapes])
    columns, difference = [], ""
    for peer in ("bench_openvino_peer", "bench_onnxruntime_peer"):
        printed = run([*pinned, str(build / "bin" / peer), f"{model}.onnx", str(executable), arguments.seconds])
        match = LINE.search(printed)
        if match is None:
            raise RuntimeError(f"{peer} printed no times: {printed}")
        own, theirs, of_medians, of_minima, difference = match.groups()
        columns += [f"{own} ms", f"{theirs} ms", of_medians, of_minima]
    return f"| {name} | {' | '.join(columns)} | {difference} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", default="2", help="for each interleaved timing, about")
    parser.add_argument("--build", default=str(Path(__file__).resolve().parent.parent / "build/dev"))
    parser.add_argument("--out", help="also append the rows to this file")
    return print_rows("native_engines", HEADER, row, parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
