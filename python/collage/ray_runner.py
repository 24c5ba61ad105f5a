"""Spreads measurements over a Ray cluster: the helper program of ``collage compile --runner ray…``.

The compiler starts it, writes requests to its standard input and reads answers from its standard output, both in lines
of JSON (src/cost/runner/external_runner.h says which). Each request becomes a Ray task on a node that offers the resource
``collage_timing``, one at a time for each node; the task hands the request to a ``collage worker`` process that the
node's Ray worker keeps. Ray sees to scheduling and to nodes that die.

Nodes need Ray and the command ``collage``, not this package: the code that runs there travels with the tasks.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import re
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO, Any

if __name__ == "__main__":
    sys.path.pop(0)  # this file's folder, where modules of the package have names that others have, too

__all__ = ["RESOURCE", "main"]

RESOURCE = "collage_timing"
"""The resource, one each, of nodes that may be used for timing: ``ray start --resources='{"collage_timing": 1}'``."""

_RETRIES = 3  # of a request whose node or process dies
_REQUESTS_PER_NODE = 2  # one that runs, and one that is there when it is done
_LARGE_BYTES = 100_000  # requests from here on go through the object store once, however often they are tried
_CONNECT_SECONDS = 60.0
_REACH_SECONDS = 10.0
_ALIVE_SECONDS = 5.0  # between signs of life
_SURVEY_SECONDS = 2.0  # between looks at which nodes there are
_EMPTY_SECONDS = 60.0  # how long there may be no node to use before that is an error
_HELLO_SECONDS = 60.0
_SHOWN = 600  # characters of what Ray says
_REQUEST = re.compile(rb'\{"id":(\d+),"request":')  # how the compiler begins one: it may be too long to parse here
_START_HINT = f"ray start --address=HOST:PORT --resources='{{\"{RESOURCE}\": 1}}'"


class _Failure(Exception):
    """The helper cannot go on."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


# What runs on the nodes.


class _Unfit(Exception):
    """Measurements of this node would not hold for the machine that is compiled for."""


class _WorkerDied(ConnectionError):
    """The process that measures ended: no answer, and no fault of the candidate, whose own process is another."""


def _find_command() -> str:
    """The command ``collage`` on this node."""
    chosen = os.environ.get("COLLAGE_COMMAND")
    if chosen:
        return chosen
    beside = os.path.join(os.path.dirname(sys.executable), "collage")
    found = beside if os.access(beside, os.X_OK) else shutil.which("collage")
    if found is None:
        raise _Unfit("there is no command 'collage' on its PATH, and COLLAGE_COMMAND does not name one")
    return found


class _Worker:
    """A ``collage worker`` process. Answers lines, one at a time."""

    def __init__(self, arguments: Sequence[str]) -> None:
        # Ray sets it to the task's number of processors; how many threads a kernel uses is in the requests.
        environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
        # Ray's workers give way to others by default; a timing must not. Lowering the number back may need a privilege.
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, 0)
        self._errors: IO[bytes] = tempfile.TemporaryFile()
        self._unread = b""
        try:
            self._process = subprocess.Popen(
                [_find_command(), "worker", *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env=environment,
            )
        except OSError as error:
            raise _Unfit(f"its command 'collage' cannot be started: {error}") from error
        try:
            hello = json.loads(self._line(_HELLO_SECONDS))
        except (_WorkerDied, ValueError) as error:
            self.kill()
            raise _Unfit(f"its 'collage worker' does not say what it is: {error}") from error
        if "unfit" in hello:
            self.kill()
            raise _Unfit(hello["unfit"])

    def _line(self, seconds: float | None = None) -> bytes:
        """The next line. Waits in short steps, so that Ray can interrupt it."""
        assert self._process.stdout is not None
        end = None if seconds is None else time.monotonic() + seconds
        while b"\n" not in self._unread:
            if end is not None and time.monotonic() > end:
                raise _WorkerDied(f"nothing came within {seconds} s")
            if not select.select([self._process.stdout], [], [], 0.2)[0]:
                continue
            got = os.read(self._process.stdout.fileno(), 1 << 16)
            if not got:
                raise _WorkerDied(self._how_it_ended())
            self._unread += got
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def _how_it_ended(self) -> str:
        status = self._process.wait()
        self._errors.seek(0)
        printed = self._errors.read().decode(errors="replace").strip()[-400:]
        how = f"was ended by signal {-status}" if status < 0 else f"ended with exit code {status}"
        return f"'collage worker' {how}{': ' if printed else ''}{printed}"

    def ask(self, line: bytes) -> dict[str, Any]:
        """Returns the answer to ``line``. An interruption ends the process, which must not continue to measure."""
        assert self._process.stdin is not None
        try:
            try:
                self._process.stdin.write(line)
                self._process.stdin.write(b"\n")
                self._process.stdin.flush()
            except OSError as error:
                raise _WorkerDied(self._how_it_ended()) from error
            answer: dict[str, Any] = json.loads(self._line())
            return answer
        except BaseException:
            self.kill()
            raise

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            with contextlib.suppress(OSError):
                if stream is not None:
                    stream.close()


_workers: dict[tuple[str, ...], _Worker] = {}  # of this process of Ray's


def _measure(line: bytes, arguments: tuple[str, ...]) -> dict[str, Any]:
    """Answers one request on the node where this runs.

    Returns:
        ``node``, and ``answer`` (what ``collage worker`` said) or ``unfit`` (why this node is not to be asked).

    Raises:
        _WorkerDied: the process that measures did; Ray tries again.
    """
    import ray

    node = ray.get_runtime_context().get_node_id()
    worker = _workers.pop(arguments, None)
    try:
        if worker is None:
            worker = _Worker(arguments)
        answer = worker.ask(line)
    except _Unfit as unfit:
        return {"node": node, "unfit": str(unfit)}
    _workers[arguments] = worker
    return {"node": node, "answer": answer}


# What runs beside the compiler.


@dataclass
class _Task:
    """A request that Ray has."""

    line: Any  # the line, or a reference to it in the object store
    result: Any  # the reference to what it will be


class _Events:
    """Events, in the order in which the helper handles them."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()

    def read(self, stream: IO[bytes]) -> None:
        """Reads lines from ``stream`` in a thread, so that the compiler never waits for Ray."""

        def run() -> None:
            for line in stream:
                self._queue.put(("line", line.rstrip(b"\n")))
            self._queue.put(("end", None))

        threading.Thread(target=run, daemon=True).start()

    def when_done(self, identity: int, reference: Any) -> None:
        future = reference.future()
        future.add_done_callback(lambda done: self._queue.put(("done", (identity, reference, done))))

    def next(self, seconds: float) -> tuple[str, Any]:
        try:
            return self._queue.get(timeout=seconds)
        except queue.Empty:
            return ("nothing", None)


class _Cluster:
    """A connected Ray cluster, and which of its nodes measure."""

    def __init__(self, address: str, arguments: Sequence[str]) -> None:
        import ray

        self._ray = ray
        self._arguments = tuple(arguments)
        self._unfit: dict[str, str] = {}  # node → why it is not used
        self._address = address
        self._measure = ray.remote(
            resources={RESOURCE: 1},
            num_cpus=0,
            max_retries=_RETRIES,
            retry_exceptions=[ConnectionError],  # _WorkerDied: a client's options name what every process has
            scheduling_strategy="SPREAD",
        )(_measure)

    def _offering(self) -> dict[str, str]:
        """Nodes that offer to measure: id → name."""
        return {
            node["NodeID"]: node.get("NodeName") or node["NodeManagerAddress"]
            for node in self._ray.nodes()
            if node["Alive"] and node["Resources"].get(RESOURCE, 0) >= 1
        }

    def num_nodes(self) -> int:
        """How many nodes can be asked. Raises when all that offer to measure have turned out to be unfit."""
        offering = self._offering()
        fit = [node for node in offering if node not in self._unfit]
        if offering and not fit:
            reasons = sorted({f"{name}: {self._unfit[node]}" for node, name in offering.items()})
            raise _Failure(
                f"has no node whose measurements hold for this machine: {' | '.join(reasons)}",
                "nodes must be of this machine's kind, with the same toolchains and the same Collage",
            )
        return len(fit)

    def note_unfit(self, node: str, reason: str) -> str:
        """Leaves a node out from now on. Returns a warning, empty when it was left out already."""
        if node in self._unfit:
            return ""
        self._unfit[node] = reason
        return f"node {self._offering().get(node, node)} of the Ray cluster does not measure: {reason}"

    def store(self, line: bytes) -> Any:
        return line if len(line) < _LARGE_BYTES else self._ray.put(line)

    def submit(self, line: Any) -> Any:
        # Nodes that were not there at the beginning may be asked, those known to be unfit not.
        selector = {"ray.io/node-id": f"!in({','.join(sorted(self._unfit))})"} if self._unfit else {}
        return self._measure.options(label_selector=selector).remote(line, self._arguments)

    def cancel(self, reference: Any) -> None:
        with contextlib.suppress(Exception):  # what has ended needs no cancelling
            self._ray.cancel(reference)

    def close(self) -> None:
        self._ray.shutdown()


def _connect(address: str, arguments: Sequence[str]) -> _Cluster:
    """Joins the cluster at ``address`` ("auto", "HOST:PORT", "ray://HOST:PORT")."""
    try:
        import ray
    except ImportError as error:
        raise _Failure(f"needs Ray, which {sys.executable} does not find ({error})", "pip install ray") from error
    if address != "auto":
        host, _, port = address.removeprefix("ray://").rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), _REACH_SECONDS).close()
        except (OSError, OverflowError) as error:
            raise _Failure(
                f"cannot reach {host}:{port}: {error}", "is the cluster running, and this its port?"
            ) from error
    try:
        try:
            ray.init(address=address, log_to_driver=False, logging_level="error")
        except ConnectionAbortedError:  # a busy head's server for this client was not up in time: it may be now
            ray.shutdown()
            ray.init(address=address, log_to_driver=False, logging_level="error")
    except Exception as error:
        text = " ".join(str(error).split()) or type(error).__name__
        hint = (
            "start one: ray start --head"
            if address == "auto"
            else "ray:HOST:PORT is for machines of the cluster, ray://HOST:PORT (port 10001) for others"
        )
        raise _Failure(f"cannot join the Ray cluster: {text[:_SHOWN]}", hint) from error
    return _Cluster(address, arguments)


class _Helper:
    """Reads requests, has them measured, writes answers."""

    def __init__(self, cluster: _Cluster, events: _Events, answers: IO[str]) -> None:
        self._cluster = cluster
        self._events = events
        self._answers = answers
        self._tasks: dict[int, _Task] = {}
        self._num_nodes = 0
        self._last_node = time.monotonic()  # when there was one to use
        self._surveyed = 0.0

    def _say(self, **message: Any) -> None:
        _say(self._answers, message)

    def run(self) -> None:
        self._survey()
        if self._num_nodes == 0:
            raise _Failure(f"has no node that offers the resource '{RESOURCE}'", _START_HINT)
        spoke = time.monotonic()
        while True:
            kind, what = self._events.next(1.0)
            if kind == "end":
                for task in self._tasks.values():
                    self._cluster.cancel(task.result)
                return
            if kind == "line":
                self._take(what)
            elif kind == "done":
                self._finish(*what)
            now = time.monotonic()
            if self._tasks and now - self._surveyed > _SURVEY_SECONDS:
                self._survey()
            if now - spoke > _ALIVE_SECONDS:
                self._say(alive=True)
                spoke = now

    def _survey(self) -> None:
        """Tells the compiler how many requests there is room for."""
        num_nodes = self._cluster.num_nodes()
        self._surveyed = now = time.monotonic()
        if num_nodes > 0:
            self._last_node = now
            if num_nodes != self._num_nodes:
                self._say(ready=num_nodes * _REQUESTS_PER_NODE)
        elif self._num_nodes > 0 and now - self._last_node > _EMPTY_SECONDS:
            raise _Failure(f"has lost all nodes that offer the resource '{RESOURCE}'", _START_HINT)
        else:
            return  # those that went may come back
        self._num_nodes = num_nodes

    def _take(self, line: bytes) -> None:
        request = _REQUEST.match(line)
        if request is not None:
            self._submit(int(request[1]), self._cluster.store(line))
            return
        for identity in json.loads(line)["cancel"]:
            task = self._tasks.pop(identity, None)
            if task is not None:
                self._cluster.cancel(task.result)

    def _submit(self, identity: int, stored: Any) -> None:
        result = self._cluster.submit(stored)
        self._tasks[identity] = _Task(stored, result)
        self._events.when_done(identity, result)

    def _finish(self, identity: int, reference: Any, done: Any) -> None:
        task = self._tasks.get(identity)
        if task is None or task.result is not reference:
            return  # cancelled
        error = done.exception()
        if error is not None:
            del self._tasks[identity]
            text = " ".join(str(error).split()) or type(error).__name__
            self._say(id=identity, error=f"had no answer after {_RETRIES + 1} tries: …{text[-_SHOWN:]}")
            return
        result = done.result()
        if "unfit" in result:
            warning = self._cluster.note_unfit(result["node"], result["unfit"])
            if warning:
                self._say(warning=warning)
                self._survey()
            self._submit(identity, task.line)
            return
        del self._tasks[identity]
        self._say(**{**result["answer"], "id": identity, "node": result["node"]})


def _say(answers: IO[str], message: dict[str, Any]) -> None:
    answers.write(json.dumps(message) + "\n")
    answers.flush()


def _fail(answers: IO[str], failure: _Failure) -> None:
    _say(answers, {"error": {"message": str(failure), "hint": failure.hint}})


def main(arguments: Sequence[str]) -> int:
    """Runs the helper until its input ends.

    Args:
        arguments: the cluster's address, then arguments for ``collage worker``.

    Returns:
        The exit code: 0, or 1 after an error that was written.
    """
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what Ray prints is no answer

    def give_up() -> None:
        _fail(answers, _Failure(f"cannot join the Ray cluster within {_CONNECT_SECONDS:.0f} s", "is it a Ray cluster?"))
        os._exit(1)

    try:
        watch = threading.Timer(_CONNECT_SECONDS, give_up)
        watch.daemon = True
        watch.start()
        cluster = _connect(arguments[0], arguments[1:])
        watch.cancel()
        events = _Events()
        events.read(os.fdopen(os.dup(0), "rb", 1 << 20))  # sys.stdin must be free when the interpreter ends
        try:
            _Helper(cluster, events, answers).run()
        finally:
            cluster.close()
    except _Failure as failure:
        _fail(answers, failure)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
