#!/usr/bin/env python3
"""whole_models.py: compiles models, checks them, and times them beside each toolchain alone and engines' own APIs.

    benchmarks/whole_models.py [--threads 1] [--budget 4m] [--lower-precision] [--build build/dev] [--out FILE] MODEL…

MODEL is a name below $COLLAGE_MODELS (~/.cache/collage/models), such as full/resnet50 or ocr/detector, a pattern such as
'small/*_int8', or a folder; `./setup models` writes them. For each one it runs, with a single thread pinned to the first
processor that the program itself may use (`taskset -c 1 benchmarks/whole_models.py …` leaves the first one to others):

    collage compile       all toolchains, costs from and into the tuning database
    collage compile       again, without time for measuring: how long it takes when the costs are known
    collage run --compare against the outputs that onnxruntime computed (rtol 1e-3, atol 1e-4)
    collage benchmark     the executable and every toolchain alone, interleaved in one process
    bench_openvino_peer   the executable and OpenVINO's own API on the ONNX file, interleaved in one process
    bench_onnxruntime_peer  the same with ONNX Runtime's own API

and prints the geometric mean over all models of the ratio to the faster one of the two engines.

With --lower-precision, the peer is OpenVINO in its default precision (bfloat16 if the processor has it). Its error on the
inputs of the play-off is the bound of `collage compile --precision any --max-error`, and nothing is compared with onnxruntime.
Prints a row of a Markdown table; ratios below 1 mean that the executable is faster. Nothing else should run meanwhile.
"""

import argparse
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

# Inputs that are dynamic in the file.
SHAPES = {
    "ocr/detector": ["x=1x3x640x640"],
    "ocr/recogniser": ["x=1x3x48x320"],
    "ocr/classifier": ["x=1x3x48x192"],
}
HEADER = (
    "| model | threads | partitions | p50 | best alone | to best alone | to OpenVINO's API | to ONNX Runtime's "
    "| largest error | cold | warm |\n"
    "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
)
# The columns of the ratios to engines, with the empty one before the first bar.
ENGINE_COLUMNS = (7, 8)
LOWER_PRECISION_HEADER = (
    "| model | threads | partitions | p50 | OpenVINO by default | ratio | error | OpenVINO's error | to compile |\n"
    "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
)


def models_folder() -> Path:
    return Path(os.environ.get("COLLAGE_MODELS") or Path.home() / ".cache/collage/models")


def run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}\nexit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def pinned_to_one(arguments: argparse.Namespace) -> list[str]:
    """Returns a prefix that pins a command of one thread to the first usable processor; empty for more threads."""
    return ["taskset", "-c", str(min(os.sched_getaffinity(0)))] if arguments.threads == 1 else []


def keep_kernels_beside(database: str | Path) -> None:
    """From now on compilations find machine code of those that used this database only: with an empty one, none."""
    os.environ["COLLAGE_KERNEL_CACHE"] = f"{Path(database).resolve()}.kernels"


def compile_model(collage: Path, model: Path, executable: Path, arguments: argparse.Namespace, budget: str, more: list[str]):
    """The report, and seconds that it took."""
    started = time.monotonic()
    command = [str(collage), "compile", f"{model}.onnx", "-o", str(executable), "--quiet", "--json"]
    command += ["--threads", str(arguments.threads), "--budget", budget]
    if arguments.database:
        command += ["--database", arguments.database]
    report = json.loads(run(command + more))
    return report, time.monotonic() - started


def winner_of(report: dict) -> dict:
    return next(entry for entry in report["play_off"] if entry["name"] == report["winner"])


def partitions_of(contender: dict) -> str:
    return " · ".join(f"{toolchain} {count}" for toolchain, count in contender["partitions"].items())


def setting_of(name: str, arguments: argparse.Namespace) -> tuple[Path, Path, Path, list[str], list[str]]:
    """The build, its command, the model's files without their suffix, options for its shapes, and what pins a command."""
    build = Path(arguments.build)
    shapes = [part for shape in SHAPES.get(name, []) for part in ("--shape", shape)]
    return build, build / "bin/collage", models_folder() / name, shapes, pinned_to_one(arguments)


def lower_precision_row(name: str, arguments: argparse.Namespace, folder: Path) -> str:
    build, collage, model, shapes, pinned = setting_of(name, arguments)
    executable = folder / "model.clg"
    alone = ["--partition-for", "openvino -inference_precision=bf16", "--max-error", "1"]
    error = winner_of(compile_model(collage, model, executable, arguments, arguments.budget, shapes + alone)[0])["max_error"]
    # What is allowed is compared with what is computed once more, in other kernels perhaps.
    allowed = ["--precision", "any", "--max-error", f"{error * 1.001:.6g}"]
    report, cold = compile_model(collage, model, executable, arguments, arguments.budget, shapes + allowed)
    print(json.dumps(report["play_off"], indent=1), file=sys.stderr)
    winner = winner_of(report)
    command = [str(build / "bin/bench_openvino_peer"), f"{model}.onnx", str(executable), arguments.seconds, "default-precision"]
    peer = run(pinned + command)
    own, precision, theirs, ratio = re.search(
        r"collage ([0-9.]+) ms [^,]*, OpenVINO in (\w+) ([0-9.]+) ms .*ratio of p50 ([0-9.]+)", peer
    ).groups()
    return (
        f"| {name} | {arguments.threads} | {partitions_of(winner)} | {own} ms | {precision} {theirs} ms | {ratio} "
        f"| {winner['max_error']:.1e} | {error:.1e} | {cold:.0f} s, {report['search']['measured']} measured |"
    )


def ratio_to(peer: str, pinned: list[str], build: Path, model: Path, executable: Path, arguments: argparse.Namespace) -> str:
    """The executable's median by an engine's, as text; "none" where the engine has no kernels for the model."""
    try:
        printed = run(pinned + [str(build / "bin" / peer), f"{model}.onnx", str(executable), arguments.seconds])
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return "none"
    return re.search(r"ratio of p50 ([0-9.]+)", printed).group(1)


def engines_mean(lines: list[str]) -> str:
    """The geometric mean over rows of the ratio to the faster engine, and the largest."""
    ratios = {}
    for line in lines:
        columns = [text.strip() for text in line.split("|")]
        known = [float(columns[at]) for at in ENGINE_COLUMNS if columns[at] != "none"]
        if known:
            ratios[columns[1]] = max(known)
    if not ratios:
        return "\nNo engine took any of the models"
    largest = max(ratios, key=ratios.get)
    mean = math.prod(ratios.values()) ** (1 / len(ratios))
    return f"\nTo the faster engine: geometric mean {mean:.3f} over {len(ratios)} models, at most {ratios[largest]:.3f} ({largest})"


def row(name: str, arguments: argparse.Namespace, folder: Path) -> str:
    build, collage, model, shapes, pinned = setting_of(name, arguments)
    executable = folder / "model.clg"
    report, cold = compile_model(collage, model, executable, arguments, arguments.budget, shapes)
    print(json.dumps(report["play_off"], indent=1), file=sys.stderr)
    again, warm = compile_model(collage, model, executable, arguments, "0.001s", shapes)
    compared = run(pinned + [str(collage), "run", str(executable), "--inputs", f"{model}.npz", "--compare", f"{model}.npz"])
    errors = [float(text) for text in re.findall(r"max absolute error ([0-9.e+-]+|inf)", compared)]
    alone = ["--model", f"{model}.onnx", *shapes]
    timed = json.loads(run(pinned + [str(collage), "benchmark", str(executable), *alone, "--json", "--seconds", arguments.seconds]))
    own, *others = timed["executables"]
    best = min(others, key=lambda entry: entry["p50_seconds"])
    openvino, onnxruntime = (
        ratio_to(peer, pinned, build, model, executable, arguments) for peer in ("bench_openvino_peer", "bench_onnxruntime_peer")
    )
    partitions = partitions_of(winner_of(again))
    built = again["seconds"]["build"] + again["seconds"]["write"]
    return (
        f"| {name} | {arguments.threads} | {partitions} | {own['p50_seconds'] * 1e3:.3f} ms "
        f"| {best['name'].removesuffix(' alone')} {best['p50_seconds'] * 1e3:.3f} ms "
        f"| {own['p50_seconds'] / best['p50_seconds']:.3f} | {openvino} | {onnxruntime} | {max(errors):.1e} "
        f"| {cold:.0f} s, {report['search']['measured']} measured "
        f"| {warm:.1f} s, of which build and write {built:.1f}, {again['search']['measured']} measured |"
    )


class NotComparable(Exception):
    """There is no row for a model, and why."""


def find_models(patterns: list[str]) -> list[str]:
    """Returns names of models, each once: "full/resnet50" itself, matches of "small/*" or "full/*_int8" below
    models_folder(), all in the folder "small". A path that ends in .onnx stays unchanged."""
    names: list[str] = []
    for pattern in patterns:
        glob = f"{pattern.rstrip('/')}/*" if (models_folder() / pattern).is_dir() else pattern
        if pattern.endswith(".onnx") or not set("*?[") & set(glob):
            found = [glob]
        else:
            files = sorted(models_folder().glob(f"{glob}.onnx"))
            found = [str(file.relative_to(models_folder()).with_suffix("")) for file in files]
        if not found:
            raise RuntimeError(f"no model in '{models_folder()}' is called '{pattern}'")
        names += [name for name in found if name not in names]
    return names


class KeptRows:
    """Rows that an earlier run with the same settings finished, in the folder --keep, so that a stopped run goes on where
    it was. Without that option nothing is kept."""

    def __init__(self, arguments: argparse.Namespace, settings: list[str], model: Path):
        self.folder = Path(arguments.keep) if arguments.keep else None
        file = model.stat()
        self.settings = {"model": [file.st_size, file.st_mtime_ns], **{name: getattr(arguments, name) for name in settings}}

    def find(self, stem: str) -> str | None:
        file = self.folder / f"{stem}.row.json" if self.folder else None
        if file is None or not file.exists():
            return None
        kept = json.loads(file.read_text())
        return kept["row"] if kept["settings"] == self.settings else None

    def keep(self, stem: str, row: str) -> str:
        if self.folder:
            (self.folder / f"{stem}.row.json").write_text(json.dumps({"settings": self.settings, "row": row}))
        return row


def print_rows(
    program: str,
    header: str,
    make_row: Callable[..., str],
    arguments: argparse.Namespace,
    variants: list[str] | None = None,
    summarise: Callable[[list[str]], str] | None = None,
) -> int:
    """A row for each of the models, or for each of them in each of `variants`, as soon as it is there, and at the end what
    `summarise` says of all rows; the exit status.
    make_row(name, [variant,] arguments, folder) makes it, "" for none. Failures are told at once and once more at the end."""
    print(header, flush=True)
    troubles: list[str] = []
    lines: list[str] = []
    failed = 0
    for name in find_models(arguments.models):
        for variant in [[]] if variants is None else [[one] for one in variants]:
            what = " ".join([name, *variant])
            try:
                with tempfile.TemporaryDirectory() as folder:
                    line = make_row(name, *variant, arguments, Path(folder))
            except (RuntimeError, OSError, NotComparable) as error:
                troubles.append(f"{program}: {what}: {error}")
                print(troubles[-1], file=sys.stderr, flush=True)
                failed |= not isinstance(error, NotComparable)
                continue
            if not line:
                continue
            print(line, flush=True)
            lines.append(line)
            if arguments.out:
                with open(arguments.out, "a", encoding="utf-8") as file:
                    file.write(line + "\n")
    if summarise and lines:
        print(summarise(lines))
    if len(troubles) > 1:
        print("\n".join(["", f"{len(troubles)} without a row:", *troubles]), file=sys.stderr)
    return int(failed)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--budget", default="0", help="for measuring candidates (default: no limit)")
    parser.add_argument("--seconds", default="15", help="for each interleaved timing, about")
    parser.add_argument("--build", default=str(Path(__file__).resolve().parent.parent / "build/dev"))
    parser.add_argument("--database", help="tuning database (default: the user's)")
    parser.add_argument("--out", help="also append the rows to this file")
    parser.add_argument("--lower-precision", action="store_true", help="within the error of OpenVINO's default precision")
    arguments = parser.parse_args()
    if arguments.database:
        keep_kernels_beside(arguments.database)
    if arguments.lower_precision:
        return print_rows("whole_models", LOWER_PRECISION_HEADER, lower_precision_row, arguments)
    return print_rows("whole_models", HEADER, row, arguments, summarise=engines_mean)


if __name__ == "__main__":
    sys.exit(main())
