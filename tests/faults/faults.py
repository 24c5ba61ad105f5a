#!/usr/bin/env python3
"""faults.py: commands of Collage on a machine whose system calls fail.

    tests/faults/faults.py INJECT.so COLLAGE [--each 4] [--commands compile,run,…] [--faults write:ENOSPC,…] [--show]

A row for each command, a column for each fault (inject.cc): with --each 4, the first call of that kind fails in one run, then one
further on, and so on, in as many runs as that. A cell is right if every run

    ends by itself, within a minute, with an exit code of the documentation (docs/cli.md), never by a signal;
    with an exit code other than 0 says why, in a line with "error";
    with exit code 0 leaves an output that is whole, else the old one or none;
    leaves no other file behind, neither beside the output nor where temporary files are.

"3/4" says that three of four runs were. "-" says that the command has no such call. Exit code: 1 if a cell is wrong.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

FAULTS = ("malloc:ENOMEM", "open:EACCES", "open:EMFILE", "read:EIO", "read:EINTR", "read:SHORT", "write:ENOSPC", "write:EIO",
          "write:EINTR", "write:SHORT", "mmap:ENOMEM", "fsync:EIO", "rename:EACCES", "mkdir:ENOSPC", "fork:EAGAIN")  # fmt: skip
CODES = range(7)
MOST_SECONDS = 60
MODEL = """#[version = "0.0.5"]
def @main(%x: Tensor[(4, 16), float32], %w: Tensor[(16, 16), float32]) { nn.relu(nn.dense(%x, %w)) }
"""


@dataclass(frozen=True)
class Command:
    """Arguments; OUT stands for the file that is written, and `check` says whether that one is whole. With `has_findings`, exit
    code 1 says that something was found, which is printed."""

    arguments: str
    output: str = ""
    check: str = ""
    has_findings: bool = False


COMMANDS = {
    "compile": Command(
        "compile m.relay -o OUT --threads 1 --partition-for native --database new.db", "out.clg", "info OUT --verify"
    ),
    "search": Command(
        "compile m.relay -o OUT --threads 1 --toolchains native --budget 2s --database new.db", "out.clg", "info OUT --verify"
    ),
    "run": Command("run m.clg --random --outputs OUT", "out.npz", "run m.clg --random"),
    "benchmark": Command("benchmark m.clg --seconds 0.05 --json"),
    "info": Command("info m.clg --verify"),
    "explain": Command("explain m.clg --why 0"),
    "report": Command("report m.clg -o OUT", "out.html"),
    "import": Command("import m.relay"),
    "db list": Command("db list --database known.db"),
    "db export": Command("db export OUT --database known.db", "out.jsonl", "db import OUT --database other.db"),
    "doctor": Command("doctor", has_findings=True),
}  # fmt: skip


class Machine:
    """A folder with a model, an executable and a database, and another one for temporary files."""

    def __init__(self, folder: Path, inject: Path, collage: Path) -> None:
        self.work, self.temporary, self.seen = folder / "work", folder / "tmp", folder / "seen"
        self._inject, self._collage = inject, collage
        self.work.mkdir()
        self.temporary.mkdir()
        (self.work / "m.relay").write_text(MODEL)
        made = "compile m.relay -o m.clg --threads 1 --toolchains native --budget 2s --database known.db --quiet"
        done = self.run(made)
        if done.returncode != 0:
            sys.exit(f"faults: error: the files cannot be made:\n{done.stderr}")
        self.kept = self.files()

    def run(self, arguments: str, fault: str = "") -> subprocess.CompletedProcess[str]:
        environment = {
            **os.environ,
            "TMPDIR": str(self.temporary),
            "COLLAGE_KERNEL_CACHE": str(self.work.parent / "kernels"),
            "HOME": str(self.work.parent),
        }
        if fault:
            own = {"LD_PRELOAD": str(self._inject), "COLLAGE_FAULT": fault, "COLLAGE_FAULT_SEEN": str(self.seen)}
            environment.update(own)
        command = [str(self._collage), *arguments.split()]
        return subprocess.run(
            command,
            cwd=self.work,
            env=environment,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=MOST_SECONDS,
            check=False,
        )

    def files(self) -> set[str]:
        return {
            str(path.relative_to(self.work.parent)) for top in (self.work, self.temporary) for path in top.rglob("*")
        }

    def clean(self) -> None:
        self.seen.unlink(missing_ok=True)
        for name in self.files() - self.kept:
            path = self.work.parent / name
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)

    def problem(self, command: Command, fault: str) -> str | None:
        """The fault of one run; "" for none; None where there is no such call."""
        self.clean()
        try:
            done = self.run(command.arguments.replace("OUT", command.output), fault)
        except subprocess.TimeoutExpired:
            return f"takes more than {MOST_SECONDS} s"
        if not self.seen.exists():
            return None
        if done.returncode not in CODES:
            return f"exit code {done.returncode}: {done.stderr[-300:]}"
        tells = command.has_findings and done.returncode == 1 and done.stdout
        if done.returncode != 0 and not tells and "error" not in done.stderr + done.stdout:
            return f"exit code {done.returncode} without a reason: {done.stderr[-300:]}"
        databases = {f"work/{name}.db{more}" for name in ("new", "known") for more in ("", "-wal", "-shm", "-journal")}
        left = self.files() - self.kept - databases - {f"work/{command.output}"}
        if left:
            return f"leaves {', '.join(sorted(left))} (exit code {done.returncode})"
        return self.problem_of_output(command, done.returncode)

    def problem_of_output(self, command: Command, code: int) -> str:
        if not command.output:
            return ""
        output = self.work / command.output
        if code == 0 and not output.exists():
            return "no output, and exit code 0"
        if output.exists() and command.check:
            checked = self.run(command.check.replace("OUT", command.output))
            if checked.returncode != 0:
                return f"exit code {code}, and the output is damaged: {checked.stderr[-300:]}"
        return ""


def cell(machine: Machine, command: Command, fault: str, each: int) -> tuple[str, list[str]]:
    """How many runs of how many were right, and what was wrong."""
    problems, runs, number = [], 0, 1
    while runs < each:
        problem = machine.problem(command, f"{fault}:{number}")
        if problem is None:
            break
        runs += 1
        if problem:
            problems.append(f"{fault}:{number}: {problem}")
        number += max(1, number)
    machine.clean()
    if runs == 0:
        return "-", []
    return f"{runs - len(problems)}/{runs}", problems


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("inject", type=Path)
    parser.add_argument("collage", type=Path)
    parser.add_argument("--each", type=int, default=4, help="runs of a command with a fault")
    parser.add_argument("--commands", default=",".join(COMMANDS))
    parser.add_argument("--faults", default=",".join(FAULTS))
    arguments = parser.parse_args()
    faults = arguments.faults.split(",")
    print("| command | " + " | ".join(faults) + " |")
    print("| --- |" + " --- |" * len(faults), flush=True)
    problems = []
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(Path(folder), arguments.inject.resolve(), arguments.collage.resolve())
        for name in arguments.commands.split(","):
            cells = []
            for fault in faults:
                text, found = cell(machine, COMMANDS[name], fault, arguments.each)
                cells.append(text)
                problems += [f"{name}: {one}" for one in found]
            print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
