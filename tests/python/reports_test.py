"""Types of reports, compared with the reports that are made."""

import typing
import unittest
from types import NoneType, UnionType

import collage
from collage import relay, reports
from own_folder import setUpModule, tearDownModule  # noqa: F401


def network():
    x = relay.var("x", shape=(4, 8))
    return relay.Function([x], relay.nn.relu(relay.exp(x)))


def differences(value, type_, path="report"):
    """How `value` differs from `type_`: keys that are missing or unknown, values of another type."""
    origin, inner = typing.get_origin(type_), typing.get_args(type_)
    if type_ is typing.Any:
        return []
    if origin is UnionType:
        return [] if value is None and NoneType in inner else differences(value, inner[0], path)
    if typing.is_typeddict(type_):
        hints = typing.get_type_hints(type_)
        wrong = [f"{path}.{key}" for key in set(hints) ^ set(value)]
        return wrong + [
            one for key in set(hints) & set(value) for one in differences(value[key], hints[key], f"{path}.{key}")
        ]
    if origin is list:
        return [one for element in value for one in differences(element, inner[0], f"{path}[]")]
    if origin is dict:
        return [one for element in value.values() for one in differences(element, inner[1], f"{path}[]")]
    return [] if type(value) is type_ else [f"{path}: {type(value).__name__}, not {type_.__name__}"]


class Reports(unittest.TestCase):
    def test_compile(self):
        report = collage.compile(network(), threads=1, toolchains=["native"]).report
        self.assertEqual(differences(report, reports.CompileReport), [])
        self.assertEqual(report["schema"], 2)
        self.assertGreater(report["p50_seconds"], 0)
        self.assertEqual(report["play_off"][0]["to_winner"] is None, report["play_off"][0]["failure"] != "")

    def test_toolchains(self):
        self.assertEqual(differences(collage.toolchains(), list[reports.ToolchainReport]), [])

    def test_support(self):
        report = collage.support(network())
        self.assertEqual(differences(report, reports.SupportReport), [])

    def test_operator_table(self):
        tables = collage.operator_table(["native"], ["abs"], ["float32"])
        self.assertEqual(differences(tables, list[reports.OperatorTable]), [])
        self.assertGreater(len(tables[0]["rows"]), 0)

    def test_differences_are_found(self):
        row = {"operator": "abs", "dtype": "float32", "layouts": "plain", "calls": 1.5, "max_error": 0.0, "reason": ""}
        found = differences(row, reports.OperatorRow)
        self.assertEqual(sorted(found), ["report.calls: float, not int", "report.failures", "report.reason"])


if __name__ == "__main__":
    unittest.main()
