"""Reports of models that are compiled here: the page shows what `collage explain --json` prints."""

import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import made_up
from browser import open_page, opened_browser, written
from texts import operators, seconds, share

MODEL = """#[version = "0.0.5"]
def @main(%x: Tensor[(1, 4, 16, 16), float32], %w: Tensor[(8, 4, 3, 3), float32]) {
  %0 = nn.relu(nn.conv2d(%x, %w, padding=[1, 1, 1, 1]));
  (nn.max_pool2d(%0, pool_size=[2, 2], strides=[2, 2]), nn.softmax(nn.batch_flatten(%0)))
}
"""


def collage(*words: str | Path) -> str:
    command = [os.environ["COLLAGE_REPORT_COMMAND"], *map(str, words)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout


class CompiledTest(unittest.TestCase):
    def test_the_page_shows_what_explain_prints(self):
        with tempfile.TemporaryDirectory() as name, opened_browser() as browser:
            folder = Path(name)
            (folder / "model.relay").write_text(MODEL)
            executable, page_file = folder / "model.clg", folder / "model.html"
            collage("export", folder / "model.relay", "-o", folder / "model.onnx")
            collage("compile", folder / "model.onnx", "-o", executable, "--threads", "1", "--toolchains", "native",
                    "--database", folder / "costs.db", "--quiet")  # fmt: skip
            (folder / "profile.json").write_text(collage("profile", executable, "--json"))
            collage("report", executable, "-o", page_file, "--profile", folder / "profile.json")
            graph = json.loads(collage("explain", executable, "--json"))["graphs"][0]
            profile = json.loads((folder / "profile.json").read_text())
            self.compare(browser, page_file, graph, profile)

    def compare(self, browser, file, graph, profile):
        page, problems = open_page(browser, file)
        rows = page.eval_on_selector_all(
            "table.partitions tbody tr", "rows => rows.map(row => [...row.cells].map(cell => cell.textContent.trim()))"
        )
        in_run = {step["partition"]: step["p50_seconds"] for step in profile["steps"]}
        expected = [
            [str(i), graph["toolchains"][graph["candidates"][row["candidate"]]["toolchain"]]["name"],
             operators(row["operators"]), row.get("first_node", ""), str(len(row["nodes"])), seconds(row.get("seconds")),
             seconds(in_run.get(row.get("kernel"))), share(row.get("share"))]
            for i, row in enumerate(graph["partitions"])
        ]  # fmt: skip
        self.assertGreater(len(expected), 0)
        self.assertEqual([row[:8] for row in rows], expected)
        page.keyboard.press("g")
        page.keyboard.press("0")
        page.click("#unfold")
        nodes = page.eval_on_selector_all("#graph .node", "all => all.map(e => Number(e.dataset.node))")
        self.assertEqual(sorted(nodes), sorted(node for row in graph["partitions"] for node in row["nodes"]))
        self.assertEqual(page.locator("#graph .item.output").count(), len(graph["results"]))
        self.assertEqual(problems.seen, [])

    def test_programs_have_a_graph_for_each_region(self):
        first, second = made_up.explanation(40, 3), made_up.explanation(25, 2, seed=1)
        second["graphs"][0]["name"] = "the second"
        program = first | {"graphs": first["graphs"] + second["graphs"]}
        program["report"] = first["report"] | {"regions": [first["report"], second["report"]]}
        with opened_browser() as browser, written(program) as file:
            page, problems = open_page(browser, file)
            self.assertIn("Each searched part has a certificate of its own", page.inner_text("#certificate"))
            for place, part in ((1, second), (0, first)):
                page.select_option("#graph-choice", str(place))
                partitions = part["graphs"][0]["partitions"]
                self.assertEqual(page.locator("table.partitions tbody tr").count(), len(partitions))
                dots = page.locator("#play-off .row circle").count()
                self.assertEqual(dots, sum(1 for row in part["report"]["play_off"] if not row["failure"]))
            self.assertEqual(problems.seen, [])


if __name__ == "__main__":
    unittest.main()
