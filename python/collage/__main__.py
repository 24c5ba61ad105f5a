"""``python -m collage``, and the command ``collage`` of an installed package."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Becomes the command-line program, with this process's arguments."""
    package = os.path.dirname(os.path.abspath(__file__))
    installed = os.path.join(package, "bin", "collage")
    built = os.path.join(package, "..", "..", "bin", "collage")
    program = installed if os.path.exists(installed) else built
    os.environ.setdefault("COLLAGE_PYTHON", sys.executable)  # what speaks to Ray for `--runner`
    os.execv(program, ["collage", *sys.argv[1:]])


if __name__ == "__main__":
    main()
