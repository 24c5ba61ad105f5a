"""ONNX models of narrow types and of random numbers: compiled, and run on arrays of NumPy and ml_dtypes."""

import unittest

import numpy as np
from onnx import TensorProto, helper

import collage
from own_folder import setUpModule, tearDownModule  # noqa: F401

try:
    import ml_dtypes
except ModuleNotFoundError:
    ml_dtypes = None


def model(nodes, inputs, outputs, initializers=()):
    graph = helper.make_graph(nodes, "g", inputs, outputs, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=10)


def compiled(*parts):
    return collage.compile(model(*parts), toolchains=["native"], threads=1)


def tensor(name, kind, shape):
    return helper.make_tensor_value_info(name, kind, shape)


class NarrowTypes(unittest.TestCase):
    def test_weights_of_4_bits_multiply(self):
        weight = helper.make_tensor("w", TensorProto.INT4, [16, 8], [(i % 16) - 8 for i in range(128)])
        scale = helper.make_tensor("s", TensorProto.FLOAT, [8], [0.5 + i for i in range(8)])
        nodes = [
            helper.make_node("DequantizeLinear", ["w", "s"], ["d"], axis=1),
            helper.make_node("MatMul", ["x", "d"], ["y"]),
        ]
        inputs, outputs = [tensor("x", TensorProto.FLOAT, [4, 16])], [tensor("y", TensorProto.FLOAT, [4, 8])]
        x = np.random.default_rng(1).standard_normal((4, 16)).astype("float32")
        wanted = x @ (np.array([(i % 16) - 8 for i in range(128)]).reshape(16, 8) * (0.5 + np.arange(8)))
        got = compiled(nodes, inputs, outputs, [weight, scale]).run({"x": x})["y"]
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4)

    @unittest.skipIf(ml_dtypes is None, "ml_dtypes is not installed")
    def test_arrays_of_ml_dtypes_are_inputs(self):
        nodes = [
            helper.make_node("Cast", ["a"], ["fa"], to=TensorProto.FLOAT),
            helper.make_node("Cast", ["b"], ["fb"], to=TensorProto.FLOAT),
            helper.make_node("Add", ["fa", "fb"], ["sum"]),
            helper.make_node("Cast", ["sum"], ["y"], to=TensorProto.FLOAT8E4M3FN),
        ]
        inputs = [tensor("a", TensorProto.INT4, [5]), tensor("b", TensorProto.FLOAT8E4M3FN, [5])]
        exe = compiled(nodes, inputs, [tensor("y", TensorProto.FLOAT8E4M3FN, [5])])
        a = np.array([-8, -1, 0, 3, 7]).astype(ml_dtypes.int4)
        b = np.array([0.5, 0.25, 448, -0.125, 9]).astype(ml_dtypes.float8_e4m3fn)
        got = exe.run({"a": a, "b": b})["y"].view(ml_dtypes.float8_e4m3fn)
        wanted = (a.astype("float32") + b.astype("float32")).astype(ml_dtypes.float8_e4m3fn)
        np.testing.assert_array_equal(got.astype("float32"), wanted.astype("float32"))


class RandomNumbers(unittest.TestCase):
    def noise(self, **attributes):
        nodes = [
            helper.make_node("RandomNormalLike", ["x"], ["n"], **attributes),
            helper.make_node("Mul", ["x", "n"], ["p"]),
            helper.make_node("Tanh", ["p"], ["y"]),
        ]
        shape = [40, 50]
        return compiled(nodes, [tensor("x", TensorProto.FLOAT, shape)], [tensor("y", TensorProto.FLOAT, shape)])

    def test_runs_differ_unless_the_model_has_a_seed(self):
        x = np.ones((40, 50), "float32")
        free, seeded = self.noise(), self.noise(seed=3.0)
        self.assertFalse((free.run({"x": x})["y"] == free.run({"x": x})["y"]).all())
        first = seeded.run({"x": x})["y"]
        np.testing.assert_array_equal(first, seeded.run({"x": x})["y"])
        self.assertLess(abs(first.mean()), 0.1)
        self.assertGreater(first.std(), 0.5)

    def test_zeros_stay_zeros(self):
        y = self.noise().run({"x": np.zeros((40, 50), "float32")})["y"]
        self.assertEqual(np.count_nonzero(y), 0)


if __name__ == "__main__":
    unittest.main()
