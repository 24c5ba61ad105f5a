#!/usr/bin/env python3
"""mixes.py: models on which a mix of toolchains is faster than every single one, and which operators each of them won.

    benchmarks/record.py mixes --conditions TEXT -- \\
        benchmarks/compilations/mixes.py [--threads 1] [--budget 2m] [--build build/dev] [--executables DIR] [--all] MODEL…
    benchmarks/report.py

MODEL is as for whole_models.py. Each is compiled with all default toolchains, or was, as DIR/MODEL.clg (curve.py --keep); its
play-off times the best mixes and every toolchain alone, in turn. A row has the fastest of each, and for every toolchain of the mix
its share of the mix's cost and the operators that it computes, those that cost most first. Models on which no mix is faster
by at least 0.5 % have no row, unless --all.
"""

import argparse
import json
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from whole_models import SHAPES, models_folder, run

HEADER = "| model | threads | the mix | the best toolchain alone | to it | the mix by cost |\n| --- | --- | --- | --- | --- | --- |"
# As many kinds of partitions are named for a toolchain.
SHOWN = 3
# Less is no gain that two play-offs would agree on.
NOISE = 0.005


def compile_model(name: str, arguments: argparse.Namespace, folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The report, and the graph of the explanation."""
    collage = str(Path(arguments.build) / "bin/collage")
    if arguments.executables:
        file = Path(arguments.executables) / f"{name.split(':')[0]}.clg"
        explanation = json.loads(run([collage, "explain", str(file), "--json"]))
        return explanation["report"], explanation["graphs"][0]
    file = folder / "model.clg"
    command = [collage, "compile", f"{models_folder() / name}.onnx", "-o", str(file), "--quiet", "--json"]
    command += ["--threads", str(arguments.threads), "--budget", arguments.budget]
    command += [part for shape in SHAPES.get(name, []) for part in ("--shape", shape)]
    report = json.loads(run(command))
    return report, json.loads(run([collage, "explain", str(file), "--json"]))["graphs"][0]


def ways_of(graph: dict[str, Any]) -> str:
    """ "dnnl 31 %: nn.conv2d x4 …; native 69 %: …"."""
    seconds: dict[str, Counter[str]] = defaultdict(Counter)
    calls: Counter[tuple[str, str]] = Counter()
    for partition in graph["partitions"]:
        candidate = graph["candidates"][partition["candidate"]]
        toolchain = graph["toolchains"][candidate["toolchain"]]["name"]
        seconds[toolchain][partition["operators"]] += partition["seconds"] or 0
        calls[toolchain, partition["operators"]] += 1
    total = sum(map(Counter.total, seconds.values())) or 1
    texts = []
    for toolchain, by_operators in sorted(seconds.items(), key=lambda item: -item[1].total()):
        named = [f"`{operators}` x{calls[toolchain, operators]}" for operators, _ in by_operators.most_common(SHOWN)]
        more = f" and {len(by_operators) - SHOWN} other kinds" if len(by_operators) > SHOWN else ""
        texts.append(f"{toolchain} {100 * by_operators.total() / total:.0f} %: {', '.join(named)}{more}")
    return "; ".join(texts)


def row_of(name: str, arguments: argparse.Namespace) -> str | None:
    with tempfile.TemporaryDirectory() as folder:
        report, graph = compile_model(name, arguments, Path(folder))
    ran = [one for one in report["play_off"] if not one["failure"] and one["p50_seconds"]]
    alone = min((one for one in ran if one["single"]), key=lambda one: one["p50_seconds"])
    winner = next(one for one in ran if one["name"] == report["winner"])
    ratio = winner["p50_seconds"] / alone["p50_seconds"]
    is_mix = not winner["single"] and len(winner["partitions"]) > 1
    if not arguments.all and not (is_mix and ratio < 1 - NOISE):
        return None
    times = [f"{one['p50_seconds'] * 1e3:.3f} ms" for one in (winner, alone)]
    return (
        f"| {name} | {arguments.threads} | {times[0]} | {alone['name']} {times[1]} | {ratio:.3f} | {ways_of(graph)} |"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--budget", default="2m", help="for measuring candidates of each model")
    parser.add_argument("--build", default="build/dev")
    parser.add_argument("--executables", help="folder of executables to use in place of compiling")
    parser.add_argument("--all", action="store_true", help="also models that a single toolchain wins")
    arguments = parser.parse_args()
    print(HEADER, flush=True)
    failed = 0
    for name in arguments.models:
        try:
            row = row_of(name, arguments)
        except RuntimeError as error:
            print(f"mixes: {name}: {error}", file=sys.stderr, flush=True)
            failed += 1
            continue
        print(
            row or f"mixes: {name}: no mix is faster than the best toolchain",
            file=sys.stdout if row else sys.stderr,
            flush=True,
        )
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
