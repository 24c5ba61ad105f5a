"""./check passes on the tree, runs all checks even if one fails, and each check finds what is wrong in a made-up tree."""

import json
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

from made_up_tree import SOURCE, MadeUpTreeTest

FAST = ["format", "layers", "links", "words", "spelling", "ruff", "page", "types"]
MISSPELT = "t" + "eh"


class Check(MadeUpTreeTest):
    def finds(self, message: str, check: str) -> None:
        self.assert_finds(message, "check", check)
        self.assert_finds(f"failed: {check}\n", "check", check)

    def test_this_tree_passes(self) -> None:
        done = subprocess.run(
            [SOURCE / "check", *FAST], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_made_up_tree_passes_with_a_line_and_a_time_for_each(self) -> None:
        output = self.assert_passes("check", *FAST)
        self.assertRegex(output, "^" + "".join(rf"ok +{name} +\d+\.\d s\n" for name in FAST) + "$")

    def test_all_run_even_if_one_fails(self) -> None:
        self.write("src/ir/node.cc", '#include "ir/node.h"\nint  x;\n')
        self.append("README.md", "[a](absent) " + MISSPELT)
        code, output = self.run_tool("check", *FAST)
        self.assertEqual(code, 1)
        for name, word in zip(FAST, ["FAILED", "ok", "FAILED", "ok", "FAILED", "ok", "ok", "ok"], strict=True):
            self.assertRegex(output, rf"(?m)^{word} +{name} ")
        self.assertTrue(output.endswith("failed: format, links, spelling\n"), output)

    def test_format(self) -> None:
        self.append("src/ir/node.cc", "\nint  x;\nint  y;\n")
        self.finds("src/ir/node.cc:5: error: not as clang-format-14 -i would write it\nFAILED", "format")

    def test_layers(self) -> None:
        self.append("src/ir/node.h", '#include "collage/find.h"\n')
        self.finds("src/ir/node.h:2: error: includes", "layers")

    def test_links(self) -> None:
        self.append("README.md", "\n[a](absent)\n")
        self.finds("README.md:7: error: link 'absent': there is no 'absent'", "links")

    def test_words(self) -> None:
        self.append("src/ir/node.h", "/// Of all nodes.\nint Nodes();\n")
        self.finds("src/ir/node.h:2: opening: Of all nodes.", "words")

    def test_spelling(self) -> None:
        self.append("src/ir/node.h", f"\n// And {MISSPELT} node.\n")
        self.finds(f"src/ir/node.h:3: {MISSPELT} ==> the", "spelling")

    def test_ruff(self) -> None:
        self.write("tools/script", "#!/usr/bin/env python3\nimport os\n")
        self.finds("tools/script:2:8: F401", "ruff")

    def test_page(self) -> None:
        self.write("src/page/main.js", "export const twice = 1\n")
        self.finds("src/page/main.js format", "page")
        self.write("src/page/main.js", "export const twice = (x) => x == 2;\n")
        self.finds("src/page/main.js:1:31 lint/suspicious/noDoubleEquals", "page")

    def test_types(self) -> None:
        self.append("tools/layers/baseline.py", "\n\ndef untyped(x):\n    return x\n")
        self.finds("tools/layers/baseline.py:", "types")

    def test_package_is_skipped_without_a_build(self) -> None:
        output = self.assert_passes("check", "package")
        self.assertRegex(output, r"^skipped +package +\d+\.\d s  there is no Python package in build/dev: run ./setup")

    def test_package(self) -> None:
        self.write("build/dev/python/collage/_core.pyi", "")
        self.write("build/dev/CTestTestfile.cmake", "add_test(python.types true)\nadd_test(python.else false)\n")
        self.assert_passes("check", "package")
        self.write("build/dev/CTestTestfile.cmake", "add_test(python.types false)\n")
        self.finds("1 - python.types (Failed)", "package")
        self.write("build/dev/CTestTestfile.cmake", "")
        self.finds("No tests were found", "package")

    def test_missing_program(self) -> None:
        (self.root / ".venv").unlink()
        folder = self.root / "bin"
        folder.mkdir()
        (folder / "python3").symlink_to(Path(sys.executable).resolve())
        (folder / "git").symlink_to(shutil.which("git") or "")
        code, output = self.run_tool("check", "ruff", "links", PATH=str(folder))
        self.assertEqual(code, 1, output)
        self.assertRegex(output, r"(?m)^'ruff' is not installed: run ./setup\nFAILED  ruff .*\nok +links ")

    def test_tidy(self) -> None:
        self.assertRegex(
            self.assert_passes("check", "tidy"), "^skipped tidy .* there is no build/dev/compile_commands.json"
        )
        self.write("src/ir/bug.cc", "int Bug(int x) {\n  if (x == x) x = 1;\n  return x;\n}\n")
        file = str(self.root / "src/ir/bug.cc")
        command = {"directory": str(self.root), "command": f"c++ -c {file}", "file": file}
        self.write("build/dev/compile_commands.json", json.dumps([command]))
        self.assert_finds("src/ir/bug.cc:2:9: error: both sides of operator are equivalent", "check", "--all", "tidy")

    def test_tidy_looks_at_what_differs_from_the_base(self) -> None:
        self.write("src/ir/bug.cc", "int Bug(int x) {\n  if (x == x) x = 1;\n  return x;\n}\n")
        self.write("src/ir/fine.cc", "int Fine() { return 1; }\n")
        commands = [
            {"directory": str(self.root), "command": f"c++ -c {file}", "file": file}
            for file in (f"{self.root}/src/ir/bug.cc", f"{self.root}/src/ir/fine.cc")
        ]
        self.write("build/dev/compile_commands.json", json.dumps(commands))
        git = ["git", "-C", self.root, "-c", "user.name=A", "-c", "user.email=a@example.org"]
        for arguments in (["checkout", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "all"]):
            subprocess.run([*git, *arguments], check=True)
        self.append("src/ir/fine.cc", "// changed\n")
        self.assert_passes("check", "tidy")
        self.append("src/ir/bug.cc", "// changed\n")
        self.assert_finds("src/ir/bug.cc:2:9: error:", "check", "--base", "HEAD", "tidy")

    def test_unknown_check(self) -> None:
        code, output = self.run_tool("check", "luck")
        self.assertEqual(code, 2)
        self.assertIn("there is no check 'luck'; there are: format, layers,", output)


if __name__ == "__main__":
    unittest.main()
