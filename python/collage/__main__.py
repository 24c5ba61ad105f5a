"""``python -m collage``, and the command ``collage`` of an installed package."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence


def _serve(arguments: Sequence[str]) -> None:
    """``collage worker`` in this process: with the toolchains that are registered from Python."""
    import argparse

    from collage import _core
    from collage.toolchain import load_plugins

    parser = argparse.ArgumentParser(prog="collage worker")
    parser.add_argument("--wanted", default="", help="what this machine should be")
    parser.add_argument("--timeout", default="60s", help="a measurement that answers nothing for so long has failed")
    parser.add_argument("--memory", type=int, default=12 << 30, help="bytes that a measurement may take; 0 = no limit")
    chosen = parser.parse_args(arguments)
    load_plugins()
    _core.serve_worker(chosen.wanted, _core.parse_duration(chosen.timeout), chosen.memory)


def main() -> None:
    """Becomes the command-line program, with this process's arguments; ``worker`` stays in Python."""
    if sys.argv[1:2] == ["worker"]:
        return _serve(sys.argv[2:])
    package = os.path.dirname(os.path.abspath(__file__))
    installed = os.path.join(package, "bin", "collage")
    built = os.path.join(package, "..", "..", "bin", "collage")
    program = installed if os.path.exists(installed) else built
    os.environ.setdefault("COLLAGE_PYTHON", sys.executable)  # what speaks to Ray for `--runner`
    os.execv(program, ["collage", *sys.argv[1:]])


if __name__ == "__main__":
    main()
