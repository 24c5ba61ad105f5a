#!/usr/bin/env python3
"""page_speed.py: how fast reports (`collage report`) open in a headless Chromium without a GPU, and how smoothly graphs pan.

    benchmarks/reports/page_speed.py [--opens 5] [--seconds 3] REPORT.html…

A row for each report:

    size         of the file
    partitions   with their nodes
    opened       median of --opens openings, each in a new tab: from the navigation until all is drawn
    panned       frames per second while the graph is dragged for --seconds, all folded, then all unfolded; in brackets the
                 longest time between two frames
    unfolded     time to unfold all partitions

`tests/report/made_up.py 5000 12` makes up an explanation of 5,000 nodes. Nothing else should run meanwhile.
Needs chromium and the wheel playwright, which `./setup test` installs.
"""

import argparse
import statistics
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "report"))
from browser import open_page, opened_browser

HEADER = (
    "| report | size | partitions | opened | panned, folded | panned, unfolded | unfolded |\n"
    "| --- | --- | --- | --- | --- | --- | --- |"
)
# Notes the time of every frame until the page's variable `stopped` is set.
WATCH = """() => {
  window.frames = [];
  window.stopped = false;
  const note = (time) => { window.frames.push(time); if (!window.stopped) requestAnimationFrame(note); };
  requestAnimationFrame(note);
}"""


def opened_ms(browser: Any, file: Path) -> float:
    page, problems = open_page(browser, file, viewport={"width": 1920, "height": 1080})
    ms = page.evaluate("window.drawnAt")
    page.context.close()
    if problems.seen:
        sys.exit(f"{file}: {problems.seen}")
    return float(ms)


def pan(page: Any, seconds: float) -> str:
    """Drags the graph up and down; returns frames per second and the longest time between two."""
    frame = page.locator("svg.graph").bounding_box()
    x, y = frame["x"] + frame["width"] / 2, frame["y"] + frame["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.evaluate(WATCH)
    started = page.evaluate("performance.now()")
    step = 0
    while page.evaluate("performance.now()") - started < 1000 * seconds:
        step += 1
        page.mouse.move(x + 3 * (step % 20), y - 12 * step)
    page.evaluate("window.stopped = true")
    page.mouse.up()
    times = page.evaluate("window.frames")
    gaps = [b - a for a, b in zip(times, times[1:], strict=False)]
    return f"{1000 / statistics.mean(gaps):.0f} a second ({max(gaps):.0f} ms)"


def row(browser: Any, file: Path, arguments: argparse.Namespace) -> str:
    opened = statistics.median(opened_ms(browser, file) for _ in range(arguments.opens))
    page, problems = open_page(browser, file, viewport={"width": 1920, "height": 1080}, reduced_motion="reduce")
    counts = page.evaluate("""() => {
      const { graphs } = JSON.parse(document.getElementById("explanation").textContent);
      return [graphs[0].partitions.length, graphs[0].partitions.reduce((sum, row) => sum + row.nodes.length, 0)];
    }""")
    page.keyboard.press("g")
    folded = pan(page, arguments.seconds)
    unfold = page.evaluate("""() => new Promise((done) => {
      const started = performance.now();
      document.getElementById("unfold").click();
      requestAnimationFrame(() => setTimeout(() => done(performance.now() - started)));
    })""")
    while page.locator("svg.graph.far").count():  # to a size that can be read
        page.locator("#zoom-in").click()
    unfolded = pan(page, arguments.seconds)
    page.context.close()
    if problems.seen:
        sys.exit(f"{file}: {problems.seen}")
    cells = [
        file.stem, f"{file.stat().st_size / 1e6:.2f} MB", f"{counts[0]} of {counts[1]} nodes", f"{opened / 1000:.2f} s",
        folded, unfolded, f"{unfold:.0f} ms",
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--opens", type=int, default=5, help="how often each report is opened (5)")
    parser.add_argument("--seconds", type=float, default=3, help="how long each graph is dragged (3)")
    parser.add_argument("reports", nargs="+", type=Path, metavar="REPORT.html")
    arguments = parser.parse_args()
    print(HEADER, flush=True)
    for file in arguments.reports:
        with opened_browser() as browser:
            print(row(browser, file.resolve(), arguments), flush=True)


if __name__ == "__main__":
    main()
