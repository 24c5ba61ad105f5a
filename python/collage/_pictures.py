"""HTML of results for notebooks: small tables, and drawings in SVG that load nothing from elsewhere."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# The colours of toolchains on the pages of `collage report`.
_COLOURS = ["#3d6fd0", "#e08a2c", "#17998a", "#c24d8e", "#84941c", "#7657c6", "#9b6a42", "#3a9fd2", "#cd4a4a"]
_REST_COLOUR = "#7b8794"
_REST = "between partitions"
_WIDTH = 640
_VISIBLE = 0.0005  # shares below are 0.0 %


@dataclass(frozen=True)
class Piece:
    """A partition as a picture shows it; ``seconds`` is None if it was never measured."""

    toolchain: str
    operators: str
    nodes: Sequence[str]
    seconds: float | None


def time_text(seconds: float) -> str:
    """Returns a time with three digits and a unit.

    >>> time_text(0.0123), time_text(4.5e-7)
    ('12.3 ms', '0.450 us')
    """
    if not math.isfinite(seconds):
        return "unknown"
    scale, unit = next(((s, u) for s, u in ((1.0, "s"), (1e-3, "ms")) if abs(seconds) >= s), (1e-6, "us"))
    value = seconds / scale
    return f"{value:.{max(0, 2 - int(math.log10(max(abs(value), 1e-9)))) if abs(value) >= 1 else 3}f} {unit}"


def _escaped(text: object) -> str:
    return html.escape(str(text))


def _rows(rows: Iterable[tuple[str, str]]) -> str:
    """A table of names and values; the values are HTML, and rows without one are left out."""
    cells = "".join(
        f'<tr><th style="text-align:left;padding:1px 12px 1px 0">{_escaped(name)}</th>'
        f'<td style="text-align:left">{value}</td></tr>'
        for name, value in rows
        if value
    )
    return f"<table>{cells}</table>"


def _table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    head = "".join(f'<th style="text-align:left">{_escaped(name)}</th>' for name in columns)
    body = "".join(
        "<tr>" + "".join(f'<td style="text-align:left">{_escaped(cell)}</td>' for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _svg(height: int, content: str, label: str) -> str:
    return (
        f'<svg role="img" aria-label="{_escaped(label)}" viewBox="0 0 {_WIDTH} {height}" '
        f'style="width:100%;max-width:{_WIDTH}px;height:{height}px" preserveAspectRatio="none">{content}</svg>'
    )


def _rectangle(x: float, y: float, width: float, height: float, colour: str, title: str) -> str:
    return (
        f'<rect x="{x:.2f}" y="{y:.2f}" width="{max(width, 0.3):.2f}" height="{height:.2f}" fill="{colour}" '
        f'stroke="#ffffff" stroke-width="0.4"><title>{_escaped(title)}</title></rect>'
    )


def pieces_of(explanation: Mapping[str, Any]) -> tuple[list[Piece], float]:
    """Returns the partitions of all graphs of an explanation, and the seconds that runs take between them."""
    pieces: list[Piece] = []
    between = 0.0
    for graph in explanation["graphs"]:
        for part in graph["partitions"]:
            toolchain = graph["toolchains"][graph["candidates"][part["candidate"]]["toolchain"]]["name"]
            nodes = [graph["nodes"][node].get("name", "") for node in part["nodes"]]
            pieces.append(Piece(toolchain, part["operators"], nodes, part.get("seconds")))
            between += part["transition_seconds"] + part["switch_seconds"] + part["conversion_seconds"]
    return pieces, between


def _by_toolchain(pieces: Sequence[Piece]) -> dict[str, float]:
    """Seconds of each toolchain, the largest first."""
    seconds: dict[str, float] = {}
    for piece in pieces:
        seconds[piece.toolchain] = seconds.get(piece.toolchain, 0.0) + (piece.seconds or 0.0)
    return dict(sorted(seconds.items(), key=lambda item: -item[1]))


def _bar(pieces: Sequence[Piece], between: float, colours: Mapping[str, str]) -> str:
    """The partitions in the order of a run, each as long as its share of the time."""
    total = sum(piece.seconds or 0.0 for piece in pieces) + between
    if total <= 0:
        return ""
    drawn, x = "", 0.0
    for piece in pieces:
        share = (piece.seconds or 0.0) / total
        nodes = ", ".join(filter(None, piece.nodes))
        cost = "never measured" if piece.seconds is None else f"{time_text(piece.seconds)}, {share:.1%}"
        title = f"{piece.operators}\n{piece.toolchain}, {cost}" + (f"\n{nodes}" if nodes else "")
        drawn += _rectangle(x, 0, share * _WIDTH, 28, colours[piece.toolchain], title)
        x += share * _WIDTH
    if between > 0:
        drawn += _rectangle(x, 0, between / total * _WIDTH, 28, _REST_COLOUR, f"{_REST}, {time_text(between)}")
    return _svg(28, drawn, "partitions by toolchain")


def _toolchains(pieces: Sequence[Piece], between: float, colours: Mapping[str, str], noun: str) -> str:
    """A line for each toolchain: its colour, its share of the time, how many pieces, which are called ``noun``."""
    seconds = _by_toolchain(pieces)
    total = sum(seconds.values()) + between
    lines = []
    for name, colour in [*colours.items(), *([(_REST, _REST_COLOUR)] if between > _VISIBLE * total else [])]:
        of = between if name == _REST else seconds[name]
        share = f"{of / total:.1%} of the time" if total > 0 else "share of the time unknown"
        count = sum(piece.toolchain == name for piece in pieces)
        counted = "" if name == _REST else f", {count} {noun}{'s' * (count != 1)}"
        lines.append(f'<span style="color:{colour}">&#9632;</span> {_escaped(name)} {share}{counted}')
    return "<br>".join(lines)


def of_executable(
    model: str, signature: str, threads: int, report: Mapping[str, Any] | None, pieces: Sequence[Piece], between: float
) -> str:
    """An executable: model, median, toolchains with their shares of the time, and the bar of its partitions."""
    colours = {name: _COLOURS[i % len(_COLOURS)] for i, name in enumerate(_by_toolchain(pieces))}
    rows = [("model", _escaped(model)), ("signature", f"<code>{_escaped(signature)}</code>" if signature else "")]
    median = None if report is None else report["p50_seconds"]
    winner = "" if report is None or not report["winner"] else f" ({_escaped(report['winner'])})"
    rows.append(("median", "not measured" if median is None else f"{time_text(median)}{winner}"))
    rows.append(("threads", str(threads)))
    if pieces:
        rows.append(("toolchains", _toolchains(pieces, between, colours, "partition")))
    of_any_size = {one["toolchain"]: one["any_size_kernels"] for one in (report or {}).get("parts", [])}
    kernels = ", ".join(f"{_escaped(name)} {count}" for name, count in of_any_size.items() if count)
    rows.append(("kernels for any size", kernels))
    unknown = sum(piece.seconds is None for piece in pieces)
    if unknown:
        rows.append(("never measured", f"{unknown} of {len(pieces)} partitions"))
    return f"<div>{_rows(rows)}{_bar(pieces, between, colours)}</div>"


def of_samples(samples: Any) -> str:
    """A `BenchmarkSummary`: percentiles, and how often runs took how long."""
    rows = [(name, time_text(getattr(samples, name))) for name in ("p50", "p90", "p99", "mean", "min", "max")]
    text = _rows([*rows, ("runs", str(samples.count))])
    if samples.count < 2:
        return f"<div>{text}</div>"
    low, high = samples.min, samples.percentile(99)
    bins = 40
    counts = [0] * bins
    for one in samples:
        counts[min(int((one - low) / (high - low) * bins), bins - 1) if high > low else 0] += 1
    height, width = 60, _WIDTH / bins
    drawn = ""
    for i, count in enumerate(counts):
        if count:
            tall = height * count / max(counts)
            begin = low + (high - low) * i / bins
            title = f"{count} runs from {time_text(begin)}" + (", and longer ones" if i == bins - 1 else "")
            drawn += _rectangle(i * width, height - tall, width, tall, _COLOURS[0], title)
    return f"<div>{text}{_svg(height, drawn, 'runs by their time')}</div>"


class ShownExplanation(dict[str, Any]):
    """A `collage.explanations.Explanation` that notebooks show as they show the executable."""

    def _repr_html_(self) -> str:
        pieces, between = pieces_of(self)
        return of_executable(self["model"], "", self["report"]["threads"], self["report"], pieces, between)


class ShownCompileReport(dict[str, Any]):
    """A `collage.reports.CompileReport` that notebooks show as a table of the contenders."""

    def _repr_html_(self) -> str:
        median = self["p50_seconds"]
        head = [
            ("model", _escaped(self["model"])),
            ("winner", _escaped(self["winner"])),
            ("median", "not measured" if median is None else time_text(median)),
            ("threads", str(self["threads"])),
            ("measured", f"{self['search']['measured']} candidates, {self['search']['from_database']} known before"),
        ]
        rows = []
        for one in sorted(self["play_off"], key=lambda one: one["to_winner"] or math.inf):
            mix = ", ".join(f"{name} {count}" for name, count in one["partitions"].items())
            median = one["failure"] or time_text(one["p50_seconds"])
            rows.append((one["name"], median, "" if one["to_winner"] is None else f"{one['to_winner']:.2f}x", mix))
        columns = ["contender", "median", "times the winner's", "partitions"]
        return f"<div>{_rows(head)}{_table(columns, rows) if rows else ''}</div>"


class ShownProfileReport(dict[str, Any]):
    """A `collage.reports.ProfileReport` that notebooks show as a bar and a table of its steps."""

    _MOST_ROWS = 20

    def _repr_html_(self) -> str:
        steps = self["steps"]
        pieces = [Piece(step["toolchain"], step["operators"], step["nodes"], step["p50_seconds"]) for step in steps]
        between = self["between_steps_seconds"]
        colours = {name: _COLOURS[i % len(_COLOURS)] for i, name in enumerate(_by_toolchain(pieces))}
        head = [
            ("executable", _escaped(self["executable"])),
            ("median", f"{time_text(self['seconds']['p50'])} of {self['runs']} runs"),
            ("threads", str(self["threads"])),
            ("toolchains", _toolchains(pieces, between, colours, "step")),
        ]
        longest = sorted(steps, key=lambda step: -step["p50_seconds"])[: self._MOST_ROWS]
        rows = [
            (
                step["step"],
                step["toolchain"],
                step["operators"] or step["kind"],
                time_text(step["p50_seconds"]),
                f"{step['share']:.1%}",
                ", ".join(step["nodes"][:3]) + (" …" if len(step["nodes"]) > 3 else ""),
            )
            for step in longest
        ]
        table = _table(["step", "toolchain", "operators", "median", "share", "nodes"], rows)
        more = f"<p>the {len(rows)} longest of {len(steps)} steps</p>" if len(rows) < len(steps) else ""
        return f"<div>{_rows(head)}{_bar(pieces, between, colours)}{table}{more}</div>"


class ShownSupportReport(dict[str, Any]):
    """A `collage.reports.SupportReport` that notebooks show as a table of the toolchains."""

    def _repr_html_(self) -> str:
        rows = []
        for one in self["toolchains"]:
            refused = {reason["reason"]: None for row in one["operators"] for reason in row["refused"]}
            reasons = "; ".join([*refused][:3]) + (" …" if len(refused) > 3 else "")
            rows.append(
                (one["name"], f"{one['taken']} of {self['calls']}", "" if one["available"] else one["reason"], reasons)
            )
        return f"<div>{_table(['toolchain', 'calls it takes', 'not available', 'why not the others'], rows)}</div>"
