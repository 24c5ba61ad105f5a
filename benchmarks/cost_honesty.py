#!/usr/bin/env python3
"""cost_honesty.py: accuracy and price of measured costs: additive error, apparent loss, time (RFC 0.81, Drawbacks).

    benchmarks/cost_honesty.py [--threads 1,2] [--budget 0] [--toolchains native,dnnl] [--database FILE] MODEL [MODEL…]
    benchmarks/cost_honesty.py --reports DIR

The first form compiles each MODEL (as for repeatability.py) twice for each number of threads, from an empty database unless one is
given; the second compilation must measure nothing. --keep DIR keeps the reports. The second form reads reports: each NAME.json
that `collage compile --json` printed, and NAME.again.json of the second compilation where there is one. Columns:

    measured, share    measurements, and their share of all candidates in all formats; they include about twenty of the machine's
                       rates, conversions and transitions, so small models show too much
    additive error     end-to-end time of the best mix, minus the sum of its partitions; percent of the former
    apparent loss      the winner's time minus that of each toolchain's own partitioning, percent of the latter: below 0 the
                       winner is faster
    cold, second       seconds to the finished executable
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

from repeatability import model_file, report_name, shape_arguments
from whole_models import keep_kernels_beside, run

HEADER = (
    "| model | threads | candidates | with formats | measured | share, at most | additive error | apparent loss | cold "
    "| second, measured | second |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
)


def additive_error(report: dict) -> str:
    best = report["play_off"][0]
    if best["failure"] or best["estimated_seconds"] <= 0:
        return "not known"
    seconds = report["additive_error_seconds"]
    return f"{seconds * 1e3:+.3g} ms, {seconds / best['p50_seconds'] * 100:+.1f} %"


def apparent_losses(report: dict) -> str:
    alone = {entry["name"]: entry["p50_seconds"] for entry in report["play_off"]}
    losses = report["apparent_loss_seconds"] or {}
    return " · ".join(f"{name} {seconds / alone[name] * 100:+.1f} %" for name, seconds in losses.items()) or "none alone"


def row(name: str, report: dict, again: dict | None) -> str:
    if not report.get("play_off"):
        raise RuntimeError("it is a program, not one graph: there is no play-off of the whole")
    search = report["search"]
    measured = f"{search['measured']}{', budget spent' if search['budget_spent'] else ''}"
    if again and again["search"]["measured"] and not search["budget_spent"]:
        print(f"cost_honesty: {name}: the second compilation measured what the first should have", file=sys.stderr)
    second = f"{again['search']['measured']} | {again['seconds']['total']:.1f} s" if again else "not compiled |"
    return (
        f"| {name} | {report['threads']} | {search['candidates']} | {search['variants']} | {measured} "
        f"| {min(search['measured'] / max(search['variants'], 1), 1) * 100:.0f} % | {additive_error(report)} "
        f"| {apparent_losses(report)} | {report['seconds']['total']:.1f} s | {second} |"
    )


def rows_of_reports(folder: Path) -> list[str]:
    files = sorted(file for file in folder.glob("*.json") if not file.name.endswith(".again.json"))
    if not files:
        raise RuntimeError(f"there is no report in '{folder}'")
    rows = []
    for file in files:
        again = file.with_suffix(".again.json")
        try:
            report = json.loads(file.read_text())
            second = json.loads(again.read_text()) if again.exists() else None
            # As repeatability.py names them: MODEL.tTHREADS.N
            name = file.stem.rsplit(f".t{report['threads']}.", 1)[0]
            rows.append(row(name, report, second))
        except (ValueError, KeyError) as error:
            raise RuntimeError(f"'{file}' is no report of `collage compile --json`: {error!r}") from error
    return rows


def compile_rows(name: str, threads: int, arguments: argparse.Namespace, folder: Path) -> str:
    command = [str(Path(arguments.build) / "bin/collage"), "compile", str(model_file(name)), *shape_arguments(name)]
    command += ["--threads", str(threads), "--budget", arguments.budget, "--quiet", "--json"]
    command += ["--toolchains", arguments.toolchains] if arguments.toolchains else []
    database = arguments.database or str(folder / "tuning.db")
    command += ["--database", database, "-o", str(folder / "model.clg")]
    keep_kernels_beside(database)
    texts = {"": run(command), ".again": run(command)}
    if arguments.keep:
        for suffix, text in texts.items():
            (Path(arguments.keep) / f"{report_name(name, threads, 1)}{suffix}.json").write_text(text)
    return row(name, json.loads(texts[""]), json.loads(texts[".again"]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL")
    parser.add_argument("--reports", metavar="DIR", help="make the table from the reports there")
    parser.add_argument("--threads", default="1", help="numbers separated by commas")
    parser.add_argument("--budget", default="0", help="for measuring candidates (default: no limit)")
    parser.add_argument("--toolchains", help="only these, separated by commas")
    parser.add_argument("--database", help="tuning database (default: an empty one for each model and number of threads)")
    parser.add_argument("--keep", metavar="DIR", help="keep the reports there")
    parser.add_argument("--build", default=str(Path(__file__).resolve().parent.parent / "build/dev"))
    arguments = parser.parse_args()
    if bool(arguments.models) == bool(arguments.reports):
        parser.error("give models, or --reports DIR")
    if not all(part.isdigit() and int(part) > 0 for part in arguments.threads.split(",")):
        parser.error(f"--threads must be numbers separated by commas, not '{arguments.threads}'")
    if arguments.keep:
        Path(arguments.keep).mkdir(parents=True, exist_ok=True)
    failed = 0
    try:
        print(HEADER)
        if arguments.reports:
            print("\n".join(rows_of_reports(Path(arguments.reports))))
    except (RuntimeError, OSError) as error:
        print(f"cost_honesty: {error}", file=sys.stderr)
        failed = 1
    for name in arguments.models:
        for threads in map(int, arguments.threads.split(",")):
            with tempfile.TemporaryDirectory() as folder:
                try:
                    print(compile_rows(name, threads, arguments, Path(folder)), flush=True)
                except (RuntimeError, OSError) as error:
                    print(f"cost_honesty: {name}: {error}", file=sys.stderr)
                    failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
