"""Tests of a build that run on a GPU, carried to a machine where nothing is built."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

OF_THE_STANDIN = "COLLAGE_LIBRARY_PATH"


@dataclass
class Entry:
    """An entry of CTest. `program` is the name of its executable."""

    name: str
    program: str
    arguments: list[str]
    environment: dict[str, str]


def entries(build: Path) -> list[Entry]:
    """All tests of the build. Those that are for a stand-in lose the variable that says where it is."""
    done = subprocess.run(["ctest", "--show-only=json-v1"], cwd=build, capture_output=True, text=True, check=True)
    found = []
    for test in json.loads(done.stdout)["tests"]:
        if "command" not in test:
            continue
        variables = next((one["value"] for one in test["properties"] if one["name"] == "ENVIRONMENT"), [])
        environment = dict(one.split("=", 1) for one in variables)
        environment.pop(OF_THE_STANDIN, None)
        program, *arguments = test["command"]
        found.append(Entry(test["name"], program, arguments, environment))
    return found


def is_for_gpu(name: str) -> bool:
    return (
        name.endswith(".gpu") or name.startswith("conformance.cuda.") or name in ("property.cuda", "property.cuda.full")
    )


def run(
    entry: Entry, programs: Path, environment: dict[str, str], seconds: float, wrapper: list[str]
) -> tuple[str, str]:
    """`passed`, `failed`, `skipped` or `stopped`, and the last words of a test that did not pass."""
    command = [*wrapper, str(programs / entry.program), *entry.arguments]
    own = environment | entry.environment | {"COLLAGE_TEST_GPU": "1"}
    try:
        done = subprocess.run(
            command, env=os.environ | own, capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        return "stopped", f"after {seconds:.0f} s"
    except OSError as error:
        return "failed", str(error)
    output = done.stdout + done.stderr
    if done.returncode != 0:
        return "failed", " ".join(output.split()[-40:])
    return ("skipped", reason_of(output)) if "[  SKIPPED ]" in output else ("passed", "")


def reason_of(output: str) -> str:
    lines = output.splitlines()
    for number, line in enumerate(lines):
        if line.endswith(": Skipped"):
            return lines[number + 1]
    return ""
