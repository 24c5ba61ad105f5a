"""A helper program (src/cost/runner/external_runner.h) that does what its argument says, for tests."""

import json
import os
import signal
import sys
import time


def say(**message):
    print(json.dumps(message), flush=True)


def record(label):
    return {"ok": True, "minimum": 1.0, "p50": 2.0, "p90": 3.0, "num_samples": 4, "max_error": 0.0, "reason": label}


def requests():
    for line in sys.stdin:
        yield json.loads(line)


def backwards():
    """Takes three at a time and answers them last first."""
    say(ready=3)
    held = []
    for message in requests():
        held.append(message)
        if len(held) == 3:
            for one in reversed(held):
                say(id=one["id"], record=record(str(one["request"]["rate"])))
            held = []


def dies():
    """Answers the first, then ends with something to say."""
    say(ready=2)
    for message in requests():
        say(id=message["id"], record=record("first"))
        print("the last thing it said", file=sys.stderr, flush=True)
        os._exit(3)


def killed():
    say(ready=1)
    next(requests())
    os.kill(os.getpid(), signal.SIGKILL)


def garbage():
    say(ready=1)
    next(requests())
    print("Traceback (most recent call last):", flush=True)
    time.sleep(60)


def malformed():
    say(ready=1)
    say(id=next(requests())["id"], record={"ok": True})


def silent():
    say(ready=1)
    time.sleep(60)


def never_ready():
    time.sleep(60)


def unfit():
    say(ready=1, unfit="it is of another kind")
    list(requests())


def refuses():
    say(error={"message": "has nowhere to measure", "hint": "start something"})


def cannot():
    say(ready=1)
    say(id=next(requests())["id"], error="lost it on the way")


def warns():
    say(warning="one is missing")
    say(ready=1)
    for message in requests():
        if "request" in message:
            say(id=message["id"], record=record("warned"))


def cancels():
    """Answers one of four, then says in its next first answer what was cancelled."""
    say(ready=4)
    first = next(requests())
    say(id=first["id"], record=record("first"))
    cancelled = None
    for message in requests():
        if "cancel" in message:
            cancelled = message["cancel"]
            say(id=cancelled[0], record=record("too late"))
        elif cancelled is not None:
            say(id=message["id"], record=record("cancelled " + " ".join(map(str, cancelled))))


globals()[sys.argv[1]]()
