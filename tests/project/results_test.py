"""Results: pages hold the figures of benchmarks/results and no others; benchmarks/record.py keeps what a benchmark prints."""

import json
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from source import ROOT, text

PROGRAM = (
    "print('| a | b |', '| --- | --- |', 'progress', '| x \\\\| y | 1 |', '', '| c |', '| --- |', '| 2 |', sep='\\n')"
)


def run(*command: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)


class Results(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def copy(self):
        """A tree of what the report reads and writes."""
        shutil.copytree(ROOT / "benchmarks/results", self.folder / "benchmarks/results")
        (self.folder / "docs").mkdir()
        for name in ("README.md", "docs/results.md"):
            shutil.copy(ROOT / name, self.folder / name)
        return self.folder

    def report(self, *arguments):
        return run(sys.executable, "-B", ROOT / "benchmarks/report.py", "--root", self.folder, *arguments)

    def test_pages_are_up_to_date(self):
        done = run(sys.executable, "-B", ROOT / "benchmarks/report.py", "--check")
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)

    def test_every_result_is_on_the_page(self):
        shown = set(re.findall(r"\{\{table (\w+)\}\}", text("benchmarks/results/page.md.in")))
        self.assertEqual(shown, {path.stem for path in (ROOT / "benchmarks/results").glob("*.json")})

    def test_a_changed_figure_is_found_and_rendered(self):
        file = self.copy() / "benchmarks/results/native_engines_1.json"
        file.write_text(file.read_text().replace('"0.910"', '"0.950"'))
        done = self.report("--check")
        self.assertEqual(done.returncode, 1)
        self.assertIn("README.md: error: not what benchmarks/results says; hint: run benchmarks/report.py", done.stdout)
        self.assertEqual(self.report().returncode, 0)
        self.assertIn("at most 0.950 (full/resnext50)", (self.folder / "docs/results.md").read_text())
        self.assertIn("smallest gain | 91.224 ms | 0.950 |", (self.folder / "README.md").read_text())

    def test_a_figure_typed_into_a_page_is_found(self):
        page = self.copy() / "docs/results.md"
        page.write_text(page.read_text() + "\nFaster by 3 %.\n")
        self.assertEqual(self.report("--check").returncode, 1)

    def record(self, *arguments):
        return run(sys.executable, "-B", ROOT / "benchmarks/record.py", "--folder", self.folder, *arguments)

    def test_record_keeps_table_command_and_conditions(self):
        done = self.record("made_up", "--conditions", "quiet", "--", sys.executable, "-c", PROGRAM)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("progress", done.stdout)
        result = json.loads((self.folder / "made_up.json").read_text())
        self.assertEqual((result["columns"], result["rows"]), (["a", "b"], [["x \\| y", "1"]]))
        self.assertEqual(result["conditions"], "quiet")
        self.assertRegex(result["recorded"], r"^\d{4}-\d\d-\d\d$")
        self.assertIn("-c", result["commands"][0])
        self.assertRegex(result["machine"], r"\d+ processors?$")

    def test_record_takes_another_table_and_keeps_names_of_columns(self):
        (self.folder / "made_up.json").write_text(json.dumps({"columns": ["better name"]}))
        done = self.record("made_up", "--table", "2", "--", sys.executable, "-c", PROGRAM)
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads((self.folder / "made_up.json").read_text())
        self.assertEqual((result["columns"], result["rows"]), (["better name"], [["2"]]))

    def test_record_adds_rows_in_parts(self):
        for first, second in (("a", 1), ("b", 2), ("a", 3)):
            program = f"print('| x | y | z |\\n| --- | --- | --- |\\n| {first} | 1 | {second} |')"
            done = self.record("made_up", "--add", "--", sys.executable, "-c", program)
            self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads((self.folder / "made_up.json").read_text())
        self.assertEqual(result["rows"], [["a", "1", "3"], ["b", "1", "2"]])
        self.assertEqual(len(result["commands"]), 3)

    def test_record_writes_nothing_when_the_command_fails_or_prints_no_table(self):
        self.assertEqual(self.record("made_up", "--", sys.executable, "-c", "exit(3)").returncode, 3)
        self.assertEqual(self.record("made_up", "--", sys.executable, "-c", "print(1)").returncode, 1)
        self.assertFalse((self.folder / "made_up.json").exists())

    def test_native_engines_prints_a_row(self):
        """Against programs that only print, since the real ones take minutes."""
        line = "x: collage 2.000 ms (min 1.9), Engine 4.000 ms (min 3.8), ratio of p50 0.500, of minima 0.510; difference 1e-06"
        (self.folder / "bin").mkdir()
        for name, printed in (("collage", ""), ("bench_openvino_peer", line), ("bench_onnxruntime_peer", line)):
            script = self.folder / "bin" / name
            script.write_text(f"#!/bin/sh\necho '{printed}'\n")
            script.chmod(0o755)
        program = ROOT / "benchmarks/native_engines.py"
        done = run(sys.executable, "-B", program, "--build", self.folder, "made_up/model.onnx")
        self.assertEqual(done.returncode, 0, done.stderr)
        figures = "2.000 ms | 4.000 ms | 0.500 | 0.510"
        self.assertIn(f"| made_up/model.onnx | {figures} | {figures} | 1e-06 |", done.stdout)


if __name__ == "__main__":
    unittest.main()
