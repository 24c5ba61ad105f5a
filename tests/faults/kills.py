#!/usr/bin/env python3
"""kills.py: compilations that are killed, alone and in a crowd, and a database that they share.

    tests/faults/kills.py COLLAGE [--moments 200] [--openings 25] [--crowd 16] [--databases sqlite,postgres] [--seed 1]

For a SQLite file and for a PostgreSQL server of its own:

    --moments compilations are ended by SIGKILL, each at a moment drawn at random. After each, the database has as many records as
    before or more, none damaged; what is in the executable's place is whole; no process is left.
    --openings times, eight processes open a database that is not there: one makes it, no other fails.
    --crowd compilations run at once, every third is killed. The others succeed; `collage db verify` finds nothing; compiling a
    model again measures nothing; nobody waits for a lock longer than two seconds, the time in which a process starts aside.

A process that is killed so leaves its temporary files, since nobody is there to remove them: the next one does. Exit code: 1 if
anything is wrong, 77 if a server is wanted and PostgreSQL is not installed.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

PROGRAMS = Path("/usr/lib/postgresql/15/bin")
MOST_SECONDS = 2  # that a lock is held
TO_START = 1  # seconds in which a command starts on a crowded machine


@dataclass
class Bench:
    """A folder with models and their executables, and the database of all."""

    collage: str
    folder: Path
    database: str
    problems: list[str] = field(default_factory=list)

    @property
    def temporary(self) -> Path:
        return self.folder / "tmp"

    def environment(self) -> dict[str, str]:
        return os.environ | {"TMPDIR": str(self.temporary), "COLLAGE_KERNEL_CACHE": str(self.folder / "kernels")}

    def command(self, model: int) -> list[str]:
        """Compiles a chain of products, other ones for each number."""
        text = self.folder / f"m{model}.relay"
        if not text.exists():
            size = 16 + 4 * model
            body = "nn.relu(nn.dense(tanh(nn.dense(%x, %w)), %w))"
            types = f"%x: Tensor[(4, {size}), float32], %w: Tensor[({size}, {size}), float32]"
            text.write_text(f'#[version = "0.0.5"]\ndef @main({types}) {{ {body} }}\n')
        options = ["--threads", "1", "--toolchains", "native,dnnl", "--quiet", "--json", "--database", self.database]
        return [self.collage, "compile", str(text), "-o", str(self.output(model)), *options]

    def output(self, model: int) -> Path:
        return self.folder / f"m{model}.clg"

    def empty(self) -> Path:
        """A file of records that has none."""
        file = self.folder / "none.json"
        file.write_text('{"format": "collage-tuning", "version": 1}\n')
        return file

    def start(self, model: int) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.command(model),
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.collage, *arguments], env=self.environment(), capture_output=True, text=True, check=False
        )

    def expect(self, holds: bool, what: str) -> None:
        if not holds:
            self.problems.append(what)
            print(f"FAILED: {what}", flush=True)

    def records(self) -> int:
        done = self.run("db", "--json", "--database", self.database)
        self.expect(done.returncode == 0, f"the database cannot be read: {done.stderr}")
        return json.loads(done.stdout)["records"] if done.returncode == 0 else 0

    def check_database(self, when: str) -> None:
        done = self.run("db", "--database", self.database, "verify")
        self.expect(done.returncode == 0, f"{when}: {done.stdout}{done.stderr}")

    def check_output(self, model: int, when: str) -> None:
        if self.output(model).exists():
            done = self.run("info", str(self.output(model)), "--verify")
            self.expect(done.returncode == 0, f"{when}: half an executable: {done.stderr}")

    def measured(self, model: int) -> int:
        """How many costs a compilation that nobody disturbs measures."""
        done = subprocess.run(self.command(model), env=self.environment(), capture_output=True, text=True, check=False)
        self.expect(done.returncode == 0, f"model {model} does not compile: {done.stderr}")
        return json.loads(done.stdout)["search"]["measured"] if done.returncode == 0 else 0


def session_ends(leader: int) -> bool:
    """Whether all processes of a session are gone soon."""
    until = time.monotonic() + 10
    while time.monotonic() < until:
        listed = subprocess.run(
            ["ps", "-s", str(leader), "-o", "pid=,stat="], capture_output=True, text=True, check=False
        )
        if not any("Z" not in line for line in listed.stdout.splitlines()):
            return True
        time.sleep(0.02)
    return False


def kill_at_moments(bench: Bench, moments: int) -> None:
    began = time.monotonic()
    bench.measured(0)
    usual = time.monotonic() - began
    before = bench.records()
    for number in range(1, moments + 1):
        after = random.uniform(0, usual)
        when = f"kill {number}, after {after:.2f} s"
        process = bench.start(number)
        try:
            process.communicate(timeout=after)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
        bench.expect(session_ends(process.pid), f"{when}: a process is left")
        now = bench.records()
        bench.expect(now >= before, f"{when}: {before} records became {now}")
        bench.check_output(number, when)
        if number % 20 == 0 or number == moments:
            bench.check_database(when)
        before = now
    bench.measured(0)
    left = [path.name for path in bench.temporary.iterdir()]
    bench.expect(not left, f"a compilation left temporary files of those that were killed: {left}")
    print(f"{bench.database}: {moments} kills within {usual:.1f} s, {before} records", flush=True)


def open_together(bench: Bench, openings: int) -> None:
    for number in range(openings):
        place = str(bench.folder / f"new{number}.db")
        command = [bench.collage, "db", "--database", place, "import", str(bench.empty())]
        openers = [
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for _ in range(8)
        ]
        for process in openers:
            printed, _ = process.communicate()
            bench.expect(process.returncode == 0, f"opening a new database: {printed}")


class Prober(threading.Thread):
    """Asks the database for a record again and again, and notes how long it takes at most."""

    def __init__(self, bench: Bench) -> None:
        super().__init__()
        self._bench = bench
        self._ends = threading.Event()
        self.longest = 0.0
        self.asked = 0

    def run(self) -> None:
        empty = self._bench.empty()
        while not self._ends.wait(0.05):
            began = time.monotonic()
            done = self._bench.run("db", "--database", self._bench.database, "import", str(empty))  # which locks it
            self.longest = max(self.longest, time.monotonic() - began)
            self.asked += 1
            self._bench.expect(done.returncode == 0, f"a crowd keeps others out: {done.stderr}")

    def end(self) -> None:
        self._ends.set()
        self.join()


def crowd(bench: Bench, size: int, first: int) -> None:
    prober = Prober(bench)
    processes = [bench.start(first + i // 2) for i in range(size)]  # two of each model
    prober.start()
    killed = set(range(0, size, 3))
    for i in killed:
        time.sleep(random.uniform(0, 0.5))
        processes[i].send_signal(signal.SIGKILL)
    for i, process in enumerate(processes):
        _, errors = process.communicate()
        bench.expect(i in killed or process.returncode == 0, f"compilation {i} of a crowd failed: {errors}")
    prober.end()
    bench.check_database("after a crowd")
    for model in range(first, first + (size + 1) // 2):
        bench.measured(model)
        bench.expect(bench.measured(model) == 0, f"model {model} is measured twice")
    bench.expect(prober.longest < MOST_SECONDS + TO_START, f"somebody held the database for {prober.longest:.1f} s")
    print(
        f"{bench.database}: a crowd of {size}, {len(killed)} killed; of {prober.asked} others the slowest took "
        f"{prober.longest:.2f} s",
        flush=True,
    )


@contextmanager
def server(folder: Path) -> Iterator[str]:
    """A PostgreSQL server of our own; its URL."""
    as_user: list[str] = []
    place = folder / "pg"
    place.mkdir()
    if os.getuid() == 0:  # the server refuses to run as root
        as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
        folder.chmod(0o755)
        subprocess.run(["chown", "postgres", place], check=True)
    initialise = [PROGRAMS / "initdb", "-D", place / "data", "-A", "trust", "-U", "collage", "--no-sync"]
    subprocess.run([*as_user, *initialise], check=True, capture_output=True)
    options = ["-k", place, "-c", "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=200"]
    with (folder / "log").open("w") as log:
        running = subprocess.Popen([*as_user, PROGRAMS / "postgres", "-D", place / "data", *options], stderr=log)
    try:
        while not (place / ".s.PGSQL.5432").exists() and running.poll() is None:
            time.sleep(0.05)
        yield f"postgresql://collage@/postgres?host={place}"
    finally:
        running.send_signal(signal.SIGINT)
        running.wait()


def check(collage: str, folder: Path, database: str, arguments: argparse.Namespace) -> list[str]:
    bench = Bench(collage, folder, database)
    bench.temporary.mkdir()
    kill_at_moments(bench, arguments.moments)
    if not database.startswith("postgresql:"):
        open_together(bench, arguments.openings)
    crowd(bench, arguments.crowd, first=arguments.moments + 1)
    return bench.problems


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("collage", type=Path)
    parser.add_argument("--moments", type=int, default=200)
    parser.add_argument("--openings", type=int, default=25)
    parser.add_argument("--crowd", type=int, default=16)
    parser.add_argument("--databases", default="sqlite,postgres")
    parser.add_argument("--seed", type=int, default=os.getpid())
    arguments = parser.parse_args()
    random.seed(arguments.seed)
    print(f"seed {arguments.seed}", flush=True)
    collage = str(arguments.collage.resolve())
    problems: list[str] = []
    for kind in arguments.databases.split(","):
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made)
            if kind == "sqlite":
                problems += check(collage, folder, str(folder / "tuning.db"), arguments)
                continue
            if not (PROGRAMS / "initdb").exists():
                print("PostgreSQL 15 is not installed")
                return 77
            with server(folder) as url:
                problems += check(collage, folder, url, arguments)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
