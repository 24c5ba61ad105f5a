#!/usr/bin/env python3
"""record.py: runs a benchmark and keeps the table that it prints as a result file, benchmarks/results/NAME.json.

    benchmarks/record.py NAME [--add] [--table 1] [--conditions TEXT] -- COMMAND…

The command's output appears as usual. The file holds the command, today's date, the machine's processor and the given
conditions ("the other core busy") beside the table's columns and rows. benchmarks/report.py renders pages from these files.
A result file that is there already keeps its names of columns if their number is the same; with --add also its rows, but for those
whose first two cells are printed again, and its commands: long tables are recorded in parts.
"""

import argparse
import datetime
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parent / "results"
_RULE = re.compile(r"^\|( ?:?-+:? ?\|)+$")


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().removeprefix("|").removesuffix("|"))]


def tables(printed: str) -> list[tuple[list[str], list[list[str]]]]:
    """Returns columns and rows of all Markdown tables in a text; lines between rows, such as progress, are left out."""
    lines = printed.splitlines()
    starts = [at for at in range(1, len(lines)) if _RULE.match(lines[at]) and lines[at - 1].startswith("|")]
    found = []
    for start, end in zip(starts, [at - 1 for at in starts[1:]] + [len(lines)], strict=True):
        columns = cells(lines[start - 1])
        rows = [cells(line) for line in lines[start + 1 : end] if line.startswith("|")]
        found.append((columns, [row for row in rows if len(row) == len(columns)]))
    return found


def machine() -> str:
    """Returns the processor's name, and how many of its processors this process may use."""
    info = Path("/proc/cpuinfo").read_text()
    name = re.search(r"^model name\s*: (.*)$", info, re.MULTILINE)
    count = len(os.sched_getaffinity(0))
    return f"{name[1].strip() if name else 'unknown processor'}, {count} processor{'s' if count > 1 else ''}"


def as_text(result: dict[str, object], rows: list[list[str]]) -> str:
    """Returns the file's JSON, a row a line, so that differences show rows."""
    head = json.dumps(result, indent=1, ensure_ascii=False).removesuffix("\n}")
    lines = ",\n".join("  " + json.dumps(row, ensure_ascii=False) for row in rows)
    return f'{head},\n "rows": [\n{lines}\n ]\n}}\n'


def run(command: list[str]) -> tuple[int, str]:
    """Runs a command whose standard output is shown as it comes; returns its exit code and that output."""
    printed = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            printed.append(line)
    return process.returncode, "".join(printed)


def added(known: dict[str, Any], rows: list[list[str]], command: str) -> tuple[list[list[str]], list[str]]:
    """Returns all rows, known ones in their order, and all commands."""
    now = {tuple(row[:2]): row for row in rows}
    kept = [now.pop(tuple(row[:2]), row) for row in known["rows"]]
    return [*kept, *now.values()], list(dict.fromkeys([*known["commands"], command]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", metavar="NAME")
    parser.add_argument("--add", action="store_true", help="keep the rows that the file has")
    parser.add_argument("--table", type=int, default=1, help="which of the printed tables (1, the first)")
    parser.add_argument("--conditions", default="", help="what else the figures depend on")
    parser.add_argument("--folder", type=Path, default=RESULTS, help="where result files are (benchmarks/results)")
    parser.add_argument("command", nargs="+", metavar="COMMAND")
    arguments = parser.parse_args()
    code, printed = run(arguments.command)
    if code != 0:
        print(f"record: exit code {code}: nothing is recorded", file=sys.stderr)
        return code
    found = tables(printed)
    if len(found) < arguments.table or not found[arguments.table - 1][1]:
        print(f"record: the command printed no table {arguments.table} with rows", file=sys.stderr)
        return 1
    columns, rows = found[arguments.table - 1]
    file: Path = arguments.folder / f"{arguments.name}.json"
    commands = [shlex.join(arguments.command)]
    if file.exists():
        known: dict[str, Any] = json.loads(file.read_text())
        if len(known["columns"]) == len(columns):
            columns = known["columns"]
            if arguments.add:
                rows, commands = added(known, rows, commands[0])
    result: dict[str, object] = {
        "commands": commands,
        "machine": machine(),
        "conditions": arguments.conditions,
        "recorded": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "columns": columns,
    }
    file.write_text(as_text(result, rows))
    print(f"record: wrote {file}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
