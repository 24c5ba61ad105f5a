"""The golden runner reads cases as their page says, and its short lines for targets and costs become the right JSON."""

import sys
import tempfile
import unittest
from pathlib import Path

from made_up_tree import SOURCE

sys.path.insert(0, str(SOURCE / "tools"))

from golden_text import targets
from golden_text.case import MalformedCaseError, fits, read_cases

CASES = """// First.
// RUN: parse
def @main() { 1 }
// EXPECT:
text
// -----
// Second.
// FILE: costs.json
{}
// EXPECT-ERROR 2:1: wrong
// HINT: right
"""


class GoldenText(unittest.TestCase):
    def read(self, text: str) -> list:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "cases.relay"
            path.write_text(text)
            return read_cases(path)

    def test_cases_are_split_and_written_back(self) -> None:
        cases = self.read(CASES)
        self.assertEqual([case.title for case in cases], ["First.", "Second."])
        self.assertEqual("// -----\n".join(case.text() for case in cases), CASES)
        self.assertEqual([case.line for case in cases], [1, 7])
        self.assertEqual(cases[1].directives["RUN"], ["parse"])
        self.assertEqual(cases[1].files()["costs.json"], "{}\n")
        self.assertEqual(cases[1].expectation, ["// EXPECT-ERROR 2:1: wrong", "// HINT: right"])

    def test_a_file_without_a_command_is_refused(self) -> None:
        with self.assertRaises(MalformedCaseError):
            self.read("def @main() { 1 }\n")

    def test_expectations_hold_expressions(self) -> None:
        self.assertTrue(fits("version {{\\d+}} (new)", "version 12 (new)"))
        self.assertFalse(fits("version {{\\d+}} (new)", "version x (new)"))
        self.assertFalse(fits("a.b", "axb"))

    def test_costs(self) -> None:
        table = targets.costs(["a=2us a.nn.relu=0.5us benefit=0.9 transition=1us coalesce", "a{3,4}=7us b{5}=invalid b/tanh"])
        self.assertEqual(table["op_cost"], {"a": {"*": 2, "nn.relu": 0.5}})
        self.assertEqual((table["fusion_benefit"], table["transition_penalty"], table["coalesce"]), (0.9, 1, True))
        self.assertEqual(table["overrides"][0], {"target": "a", "inside": [3, 4], "cost": 7})
        self.assertEqual(table["overrides"][1]["cost"], "invalid")
        self.assertEqual(table["unsupported"], {"b": ["tanh"]})
        with self.assertRaises(ValueError):
            targets.costs(["a=cheap"])

    def test_targets(self) -> None:
        native, external, own, text = targets.targets(
            ["n fuse max_depth=4", "e external patterns max_depth=2 r=nn.relu(*); a=add(*, *)", 'o {"rule": "Host"}', "llvm -x=1"]
        )
        self.assertFalse(native["external"])
        self.assertEqual(native["rule"]["config"], {"max_exits": 1, "max_depth": 4})
        self.assertTrue(external["external"])
        union = external["rule"]["sub_rule"]["sub_rule"]["sub_rule"]["sub_rules"]
        self.assertEqual([one["sub_rule"]["pattern"] for one in union], ["nn.relu(*)", "add(*, *)"])
        self.assertEqual((own["rule"], text), ({"rule": "Host"}, "llvm -x=1"))
        with self.assertRaises(ValueError):
            targets.targets(["n fuse"])


if __name__ == "__main__":
    unittest.main()
