#!/usr/bin/env python3
"""report.py: renders docs/results.md, and the table of the README, from the result files in benchmarks/results.

    benchmarks/report.py            writes both
    benchmarks/report.py --check    fails if they are not what the result files say

benchmarks/record.py writes result files. benchmarks/results/page.md.in is the page without its figures: `{{table NAME}}` stands
for the table of NAME.json with its command, machine and date, `{{sum NAME}}` for a figure computed from it.
"""

import argparse
import json
import math
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = Path("benchmarks/results")
PAGE, README = Path("docs/results.md"), Path("README.md")
GENERATED = "<!-- Written by benchmarks/report.py from benchmarks/results: change those, not this page. -->\n\n"
BEGIN, END = "<!-- results: benchmarks/report.py -->\n", "<!-- end of results -->"
# The rows of the README's table, beside the one with the smallest gain.
README_MODELS = ("resnet50", "mobilenet_v2", "yolo", "bert_base", "gpt2")
TO_OPENVINO, TO_ONNXRUNTIME = "ratio to OpenVINO", "ratio to ONNX Runtime"


class Result:
    """One table as a benchmark printed it, with the command, machine and date that it is of."""

    def __init__(self, root: Path, name: str):
        file = json.loads((root / RESULTS / f"{name}.json").read_text())
        self.commands: list[str] = file["commands"]
        self.machine: str = file["machine"]
        self.conditions: str = file["conditions"]
        self.recorded: str = file["recorded"]
        self.columns: list[str] = file["columns"]
        self.rows: list[list[str]] = file["rows"]

    def column(self, name: str) -> list[str]:
        return [row[self.columns.index(name)] for row in self.rows]

    def table(self) -> str:
        """Returns the table as Markdown, below a line that says what it is of."""
        commands = ", ".join(f"`{command}`" for command in self.commands)
        conditions = f"; {self.conditions}" if self.conditions else ""
        lines = [f"{commands}: {self.machine}{conditions}. Recorded {self.recorded}.", ""]
        lines += [f"| {' | '.join(cells)} |" for cells in [self.columns, ["---"] * len(self.columns), *self.rows]]
        return "\n".join(lines)

    def to_faster_engine(self) -> dict[str, float]:
        """Returns each model's ratio to the faster of the two engines."""
        both = zip(self.column("model"), self.column(TO_OPENVINO), self.column(TO_ONNXRUNTIME), strict=True)
        return {model: max(float(ratio) for ratio in ratios if ratio != "none") for model, *ratios in both}

    def summary(self) -> str:
        ratios = self.to_faster_engine() if TO_ONNXRUNTIME in self.columns else self.plain_ratios()
        largest = max(ratios, key=ratios.__getitem__)
        mean = geometric_mean(list(ratios.values()))
        return f"geometric mean {mean:.3f} over {len(ratios)} models, at most {ratios[largest]:.3f} ({largest})"

    def plain_ratios(self) -> dict[str, float]:
        return dict(zip(self.column("model"), map(float, self.column("ratio")), strict=True))


def geometric_mean(values: list[float]) -> float:
    return math.prod(values) ** (1 / len(values))


def page(root: Path) -> str:
    """Returns docs/results.md: the page with tables and figures filled in."""

    def filled(match: re.Match[str]) -> str:
        result = Result(root, match[2])
        return result.table() if match[1] == "table" else result.summary()

    return GENERATED + re.sub(r"\{\{(table|sum) (\w+)\}\}", filled, (root / RESULTS / "page.md.in").read_text())


def readme_table(root: Path) -> str:
    """Returns the README's figures: some models, the smallest gain, and the mean for one and for two threads."""
    one, two = Result(root, "native_engines_1"), Result(root, "native_engines_2")
    ratios = one.to_faster_engine()
    smallest_gain = max(ratios, key=ratios.__getitem__)
    lines = [
        "| model | Collage | time relative to OpenVINO | relative to ONNX Runtime |",
        "| --- | --- | --- | --- |",
    ]
    for model in [*(f"full/{name}" for name in README_MODELS), smallest_gain]:
        at = one.column("model").index(model)
        label = f"`{model.removeprefix('full/')}`" + (", the smallest gain" if model == smallest_gain else "")
        figures = [one.column(name)[at] for name in ("Collage", TO_OPENVINO, TO_ONNXRUNTIME)]
        lines.append(f"| {label} | {' | '.join(figures)} |")
    mean = geometric_mean(list(ratios.values()))
    lines.append(f"| {len(ratios)} models, geometric mean | | {mean:.3f} of the faster engine | |")
    of_two = geometric_mean(list(two.to_faster_engine().values()))
    lines += [
        "",
        f"Median latencies at batch 1 in float32 on {one.machine}, interleaved with each engine's own API; below 1, Collage",
        f"is faster. Two threads: {of_two:.3f} of the faster engine. Recorded {one.recorded}.",
        "",
    ]
    return "\n".join(lines)


def readme(root: Path) -> str:
    """Returns README.md with today's figures between its two marks."""
    text = (root / README).read_text()
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{README} has no lines '{BEGIN.strip()}' and '{END}'")
    return before + begin + readme_table(root) + end + after


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a page is not up to date")
    parser.add_argument("--root", type=Path, default=ROOT, help="the tree (this script's)")
    arguments = parser.parse_args()
    root: Path = arguments.root
    failed = False
    for name, text in ((PAGE, page(root)), (README, readme(root))):
        if not arguments.check:
            (root / name).write_text(text)
        elif not (root / name).exists() or (root / name).read_text() != text:
            print(f"{name}: error: not what benchmarks/results says; hint: run benchmarks/report.py")
            failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
