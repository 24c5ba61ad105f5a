"""ONNX models with strings: they are moved, compared and looked up, and come and go as arrays of Python's strings."""

import unittest

import numpy as np
from onnx import TensorProto, helper

import collage
from own_folder import setUpModule, tearDownModule  # noqa: F401

STRING, INT, FLOAT = TensorProto.STRING, TensorProto.INT64, TensorProto.FLOAT


def tensor(name, kind, shape):
    return helper.make_tensor_value_info(name, kind, shape)


def compiled(nodes, inputs, outputs, initializers=()):
    graph = helper.make_graph(nodes, "g", inputs, outputs, initializers)
    opsets = [helper.make_opsetid("", 19), helper.make_opsetid("ai.onnx.ml", 3)]
    return collage.compile(
        helper.make_model(graph, opset_imports=opsets, ir_version=9), toolchains=["native"], threads=1
    )


def encoder(name, given, wanted, keys, values):
    attributes = {f"keys_{given}": keys, f"values_{wanted}": values}
    return helper.make_node("LabelEncoder", [name], ["y"], domain="ai.onnx.ml", **attributes)


class Strings(unittest.TestCase):
    def test_strings_that_the_model_does_not_have_pass_through(self):
        nodes = [
            helper.make_node("Concat", ["x", "own"], ["all"], axis=0),
            helper.make_node("Gather", ["all", "at"], ["y"], axis=0),
        ]
        own = helper.make_tensor("own", STRING, [2], [b"cat", "Käse".encode()])
        exe = compiled(nodes, [tensor("x", STRING, [3]), tensor("at", INT, [4])], [tensor("y", STRING, [4])], [own])
        self.assertEqual([port.dtype for port in (*exe.inputs, *exe.outputs)], ["string", "int64", "string"])
        got = exe.run({"x": ["new", "cat", ""], "at": np.array([4, 0, 2, 3])})["y"]
        self.assertEqual(got.tolist(), ["Käse", "new", "", "cat"])

    def test_each_run_numbers_its_own_strings(self):
        exe = compiled(
            [helper.make_node("Equal", ["a", "b"], ["y"])],
            [tensor("a", STRING, [2]), tensor("b", STRING, [2])],
            [tensor("y", TensorProto.BOOL, [2])],
        )
        for a, b in ((["p", "q"], ["q", "q"]), (["r", "p"], ["r", "q"])):
            self.assertEqual(exe(a, b).tolist(), [x == y for x, y in zip(a, b)])

    def test_categories_become_numbers_and_labels_strings(self):
        nodes = [
            encoder("x", "strings", "int64s", ["red", "green"], [7, 9]),
            helper.make_node("LabelEncoder", ["y"], ["z"], domain="ai.onnx.ml", keys_int64s=[9], values_strings=["go"]),
        ]
        exe = compiled(
            nodes, [tensor("x", STRING, ["rows"])], [tensor("y", INT, ["rows"]), tensor("z", STRING, ["rows"])]
        )
        for colours, wanted in ((["green"], [9]), (["blue", "red", "green"], [-1, 7, 9])):
            got = exe.run({"x": np.array(colours)})
            self.assertEqual(got["y"].tolist(), wanted)
            self.assertEqual(got["z"].tolist(), ["go" if number == 9 else "_Unused" for number in wanted])

    def test_numbers_are_no_strings(self):
        exe = compiled(
            [helper.make_node("Identity", ["x"], ["y"])], [tensor("x", STRING, [2])], [tensor("y", STRING, [2])]
        )
        with self.assertRaisesRegex(collage.InputError, "an array of strings is wanted"):
            exe(np.array([1, 2]))

    def test_what_reads_strings_is_refused(self):
        nodes = [helper.make_node("Cast", ["x"], ["y"], to=FLOAT)]
        with self.assertRaisesRegex(collage.UnsupportedError, "element type STRING"):
            compiled(nodes, [tensor("x", STRING, [2])], [tensor("y", FLOAT, [2])])


if __name__ == "__main__":
    unittest.main()
