#!/usr/bin/env python3
"""explain_claims.py: whether what `collage explain` claims is true: runner-ups of the most expensive partitions, on the clock.

    benchmarks/explanations/explain_claims.py [--threads 1] [--budget 5m] [--seconds 4] [--database FILE] [--executables DIR]
                                              [--collage COMMAND] MODEL…

Compiles each MODEL (as for repeatability.py), or takes DIR/MODEL.clg, which compilations/curve.py --keep has left, and lets
`collage explain --verify all` compile the runner-up of each of its five most expensive partitions and time it beside the
executable. --details prints a line for each claim to standard error. Columns:

    claims          runner-ups whose cost is known, of the five partitions at most
    held            claims of which the measured interval meets the claimed one
    claimed         the runner-ups' median claim, as a share of the model's time: "+2.0 %" is a model that would be slower by this
    off by          the median distance between claim and measurement, as a share of the model's time
    largest         the largest such distance
    not timed       partitions without a runner-up of known cost, and runner-ups that could not be built
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from repeatability import model_file, shape_arguments

HEADER = (
    "| model | claims | held | claimed | off by | largest | not timed |\n| --- | --- | --- | --- | --- | --- | --- |"
)


def run(command: list[str], allowed: tuple[int, ...] = (0,)) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in allowed:
        raise RuntimeError(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout


def verify(model: str, arguments: argparse.Namespace, folder: Path) -> list[dict]:
    """Claims about the five most expensive partitions of a model, with what the clock says."""
    executable = str(folder / "model.clg")
    if arguments.executables:
        return claims_of(f"{arguments.executables}/{model}.clg", model, arguments)
    shapes = shape_arguments(model)
    compiling = ["--threads", arguments.threads, "--budget", arguments.budget, "--quiet", *shapes]
    if arguments.database:
        compiling += ["--database", arguments.database]
    file = str(model_file(model))
    run([arguments.collage, "compile", file, "-o", executable, *compiling])
    return claims_of(executable, model, arguments)


def claims_of(executable: str, model: str, arguments: argparse.Namespace) -> list[dict]:
    explain = [arguments.collage, "explain", executable, "--verify", "all", "--model", str(model_file(model)), "--json"]
    # Exit code 1: a claim does not hold.
    return json.loads(run([*explain, "--seconds", f"{arguments.seconds}s"], (0, 1)))["claims"]


def row(name: str, claims: list[dict]) -> str:
    timed = [one for one in claims if not one["failure"]]
    if not timed:
        return f"| {name} | 0 | 0 | - | - | - | {len(claims)} |"
    claimed = statistics.median(one["claimed_seconds"] / one["before_seconds"] for one in timed)
    off = [abs(one["claimed_seconds"] - one["measured_seconds"]) / one["before_seconds"] for one in timed]
    held = sum(one["holds"] for one in timed)
    return (
        f"| {name} | {len(timed)} | {held} | {claimed * 100:+.1f} % | {statistics.median(off) * 100:.1f} % "
        f"| {max(off) * 100:.1f} % | {len(claims) - len(timed)} |"
    )


def tell(name: str, claims: list[dict]) -> None:
    for one in claims:
        state = one["failure"] or ("holds" if one["holds"] else "DOES NOT HOLD")
        numbers = ""
        if not one["failure"]:
            numbers = (
                f"claimed {one['claimed_seconds'] * 1e6:+.1f} us ({one['claimed_low_seconds'] * 1e6:+.1f} to "
                f"{one['claimed_high_seconds'] * 1e6:+.1f}), measured {one['measured_seconds'] * 1e6:+.1f} us "
                f"({one['measured_low_seconds'] * 1e6:+.1f} to {one['measured_high_seconds'] * 1e6:+.1f}) "
                f"of {one['before_seconds'] * 1e3:.3f} ms: "
            )
        print(f"{name} {one['partition']} {one['operators'][:50]} -> {one['way']}: {numbers}{state}", file=sys.stderr)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", default="1")
    parser.add_argument("--budget", default="5m")
    parser.add_argument("--seconds", type=float, default=4, help="how long each pair is timed")
    parser.add_argument("--database", default="")
    parser.add_argument("--executables", help="folder of executables to use in place of compiling")
    parser.add_argument("--collage", default="collage", help="the command")
    parser.add_argument("--details", action="store_true", help="print each claim, to standard error")
    parser.add_argument("models", nargs="+", metavar="MODEL")
    arguments = parser.parse_args()
    print(HEADER, flush=True)
    every: list[dict] = []
    for model in arguments.models:
        with tempfile.TemporaryDirectory() as folder:
            claims = verify(model, arguments, Path(folder))
        if arguments.details:
            tell(Path(model).stem, claims)
        print(row(Path(model).stem, claims), flush=True)
        every += claims
    print(row("all", every))
    return 0


if __name__ == "__main__":
    sys.exit(main())
