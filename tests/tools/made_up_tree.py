"""A small tree that keeps every rule, in a temporary folder, for tests that break one."""

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
FILES = {
    "src/stages.txt": "# order\nsupport rt\nir irlib\nbackends compiler\nsearch compiler find.h\n",
    "src/support/text.h": "inline int Length() { return 1; }\n",
    "src/ir/node.h": '#include "support/text.h"\n',
    "src/ir/node.cc": '#include "ir/node.h"\n\nint Size() { return Length(); }\n',
    "src/backends/acme/toolchain.cc": '#include "ir/node.h"\n#include "shared/engine.h"\n',
    "src/backends/shared/engine.h": '#include "support/text.h"\n',
    "src/search/find.cc": '#include "collage/find.h"\n\n#include "ir/node.h"\n',
    "include/collage/find.h": "int Find();\n",
    "tests/CMakeLists.txt": "collage_unit_test(ir collage_irlib)  # and no more\n",
    "README.md": "# Title\n\nSee [below](#two-words) and [code](src/ir/node.cc).\n\n## Two `words`\n",
}
TOOLS = (
    ".clang-format",
    ".clang-tidy",
    "check",
    "pyproject.toml",
    "tools/check_layers",
    "tools/check_links",
    "tools/check_words",
    "tools/spelling.txt",
)


class MadeUpTreeTest(unittest.TestCase):
    """`self.root` is a git checkout of `FILES` and the tools, made anew for each test."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name).resolve()
        for path, text in FILES.items():
            self.write(path, text)
        for tool in TOOLS:
            (self.root / tool).parent.mkdir(exist_ok=True)
            shutil.copy(SOURCE / tool, self.root / tool)
        shutil.copytree(
            SOURCE / "tools/layers", self.root / "tools/layers", ignore=shutil.ignore_patterns("__pycache__")
        )
        (self.root / ".venv").symlink_to(SOURCE / ".venv")
        self.write(".gitignore", ".venv\nbuild\n__pycache__\n")
        subprocess.run(["git", "init", "-q", self.root], check=True)

    def write(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def append(self, path: str, text: str) -> None:
        self.write(path, (self.root / path).read_text() + text)

    def run_tool(self, *command: str, **variables: str) -> tuple[int, str]:
        """Runs a tool of the made-up tree; returns its exit code and all that it printed."""
        environment = {name: value for name, value in os.environ.items() if name != "COLLAGE_PRESET"} | variables
        done = subprocess.run(
            [self.root / command[0], *command[1:]],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout

    def assert_finds(self, message: str, *command: str) -> None:
        code, output = self.run_tool(*command)
        self.assertEqual(code, 1, output)
        self.assertIn(message, output)

    def assert_passes(self, *command: str) -> str:
        code, output = self.run_tool(*command)
        self.assertEqual(code, 0, output)
        return output
