"""Explanations: what `Executable.explain` and `collage.explanation` return, compared with their types."""

import os
import tempfile
import typing
import unittest

import numpy as np

import collage
from collage import explanations, relay
from own_folder import setUpModule, tearDownModule  # noqa: F401


def network():
    x = relay.var("x", shape=(4, 8))
    return relay.Function([x], relay.nn.relu(relay.exp(x)))


def differences(value, type_, path="explanation"):
    """How `value` differs from `type_`: keys that are missing or unknown, values of another type."""
    origin, inner = typing.get_origin(type_), typing.get_args(type_)
    if type_ is typing.Any:
        return []
    if typing.is_typeddict(type_):
        hints = typing.get_type_hints(type_)
        wrong = [f"{path}.{key} is missing" for key in type_.__required_keys__ - set(value)]
        wrong += [f"{path}.{key} is unknown" for key in set(value) - set(hints)]
        known = set(hints) & set(value)
        return wrong + [one for key in known for one in differences(value[key], hints[key], f"{path}.{key}")]
    if origin is list:
        return [one for element in value for one in differences(element, inner[0], f"{path}[]")]
    if origin is dict:
        return [one for element in value.values() for one in differences(element, inner[1], f"{path}[]")]
    return [] if type(value) is type_ else [f"{path}: {type(value).__name__}, not {type_.__name__}"]


class Explaining(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def test_the_tree_has_the_types_that_are_stated(self):
        exe = collage.compile(network(), threads=1, toolchains=["native"])
        found = exe.explain()
        hints = dict(typing.get_type_hints(explanations.Explanation))
        for key in set(hints) - {"report"}:
            self.assertEqual(differences(found[key], hints[key], key), [])
        self.assertEqual(set(found), set(hints))
        graph = found["graphs"][0]
        self.assertEqual(graph["winner"], exe.report["winner"])
        self.assertEqual(found["report"]["winner"], exe.report["winner"])
        self.assertEqual(len(graph["partitions"]), len(exe.partitions))
        for mine, other in zip(graph["partitions"], exe.partitions, strict=True):
            self.assertEqual(mine["operators"], other.operators)
        self.assertGreater(len(graph["candidates"]), 1)
        self.assertTrue(any("seconds" in cost for cost in graph["costs"]))

    def test_it_is_saved_and_loaded_with_the_executable(self):
        exe = collage.compile(network(), threads=1, toolchains=["native"])
        path = os.path.join(self.folder, "m.clg")
        exe.save(path)
        self.assertEqual(collage.load(path).explain(), exe.explain())
        self.assertEqual(collage.explanation(path), exe.explain())

    def test_it_may_be_in_a_file_or_nowhere(self):
        path = os.path.join(self.folder, "e.json")
        exe = collage.compile(network(), threads=1, toolchains=["native"], explanation=path)
        self.assertEqual(collage.explanation(path)["graphs"][0]["winner"], exe.report["winner"])
        with self.assertRaisesRegex(collage.InputError, "the executable has no explanation"):
            exe.explain()
        exe = collage.compile(network(), threads=1, toolchains=["native"], explanation="none")
        with self.assertRaisesRegex(collage.InputError, "the executable has no explanation"):
            exe.explain()
        np.testing.assert_allclose(exe(np.zeros((4, 8), np.float32)), np.ones((4, 8), np.float32))

    def test_a_program_has_a_graph_for_each_region(self):
        x = relay.var("x", shape=(8, 8))
        c = relay.var("c", shape=(), dtype="bool")
        body = relay.If(c, relay.nn.relu(relay.exp(x)), relay.nn.softmax(relay.tanh(x)))
        exe = collage.compile(relay.Function([c, x], body), threads=1, toolchains=["native"])
        self.assertEqual(len(exe.explain()["graphs"]), len(exe.report["regions"]))

    def test_differences_are_found(self):
        wrong = {"toolchain": 1.5, "more": 1}
        self.assertEqual(
            sorted(differences(wrong, explanations.Refusal, "r")),
            ["r.more is unknown", "r.reason is missing", "r.toolchain: float, not int"],
        )


if __name__ == "__main__":
    unittest.main()
