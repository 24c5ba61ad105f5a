"""Toolchains that compile functions of any size: ONNX Runtime, and those in Python."""

import json
import struct
import unittest

import numpy as np

import collage
from collage import relay
from collage.toolchain import Compiled, Toolchain, register_toolchain

HAS_ONNXRUNTIME = any(row["name"] == "onnxruntime" and row["available"] for row in collage.toolchains())

PERCEPTRON = """#[version = "0.0.5"]
def @main(%x: Tensor[(?, 24), float32], %w: Tensor[(32, 24), float32], %b: Tensor[(32), float32],
          %v: Tensor[(10, 32), float32]) {
  nn.softmax(nn.dense(nn.relu(add(nn.dense(%x, %w), %b)), %v))
}
"""

# Two open sizes, of which the first reshape merges heads and batches.
ATTENTION = """#[version = "0.0.5"]
def @main(%q: Tensor[(?, 4, ?, 8), float32], %k: Tensor[(?, 4, ?, 8), float32], %v: Tensor[(?, 4, ?, 8), float32]) {
  let %s = nn.batch_matmul(reshape(%q, newshape=[-3, -2]), reshape(%k, newshape=[-3, -2]), transpose_b=True);
  let %c = nn.batch_matmul(nn.softmax(multiply(%s, 0.35f)), reshape(%v, newshape=[-3, -2]), transpose_b=False);
  reshape(%c, newshape=[-4, -1, 4, 0, 8])
}
"""


def part_of(report, toolchain):
    return next(part for part in report["parts"] if part["toolchain"] == toolchain)


@unittest.skipUnless(HAS_ONNXRUNTIME, "ONNX Runtime is not here")
class OnnxRuntime(unittest.TestCase):
    def check(self, text, shapes_of, sizes):
        module = collage.parse(text)
        exe = collage.compile(module, threads=1, partition_for="onnxruntime")
        native = collage.compile(module, threads=1, partition_for="native")
        part = part_of(exe.report, "onnxruntime")
        self.assertEqual((part["any_size_kernels"], part["not_at_any_size"]), (1, ""))
        random = np.random.default_rng(3)
        for size in sizes:
            inputs = [random.standard_normal(shape).astype("float32") for shape in shapes_of(*size)]
            for _ in range(3):  # the second run has the sizes planned
                np.testing.assert_allclose(exe(*inputs), native(*inputs), rtol=2e-4, atol=1e-5)

    def test_a_perceptron_of_any_batch(self):
        self.check(PERCEPTRON, lambda n: [(n, 24), (32, 24), (32,), (10, 32)], [(1,), (2,), (7,), (100,), (7,)])

    def test_attention_of_any_batch_and_length(self):
        sizes = [(1, 1), (1, 9), (3, 33), (2, 100)]
        self.check(ATTENTION, lambda b, n: [(b, 4, n, 8)] * 3, sizes)

    def test_competes_with_native_kernels(self):
        report = collage.compile(
            collage.parse(PERCEPTRON), threads=1, toolchains=["native", "onnxruntime"], require=["onnxruntime"]
        ).report
        parts = [part_of(report, name) for name in ("native", "onnxruntime")]
        self.assertTrue(any(part["any_size_kernels"] > 0 for part in parts), parts)
        for part in parts:
            self.assertTrue(part["any_size_kernels"] > 0 or "takes" in part["not_at_any_size"], part)


class Exported(Toolchain):
    """Tanh, for the kernel loader of another toolchain: a model of ONNX behind its description (backends/onnxruntime/blob.h)."""

    name = "exported"
    is_default = False

    def supports_symbolic_sizes(self, call):
        return None if call.op.name == "tanh" else f"takes tanh, not {call.op.name}"

    def relay_to_runtime(self, function, input_layouts, output_layouts, threads):
        (x,) = function.params
        model = collage.frontend.to_onnx(relay.Function([x], function.body), output_names=["y"])
        shape = [-1 if dim is None else int(dim) for dim in x.checked_type.shape]

        def port(name):
            return {"name": name, "shape": shape, "element_type": 1, "bytes": 4}

        text = json.dumps({"inputs": [port(x.name_hint)], "outputs": [port("y")]}).encode()
        return Compiled(struct.pack("<Q", len(text)) + text + model, loader="onnxruntime")


class FromPython(unittest.TestCase):
    @unittest.skipUnless(HAS_ONNXRUNTIME, "ONNX Runtime is not here")
    def test_a_loader_of_cpp_runs_kernels_of_any_size(self):
        register_toolchain(Exported())
        x = relay.var("x", shape=(None, 3))
        exe = collage.compile(relay.Function([x], relay.tanh(x)), threads=1, partition_for="exported")
        self.assertEqual(part_of(exe.report, "exported")["any_size_kernels"], 1)
        for rows in (1, 2, 5, 5):
            value = np.random.default_rng(rows).standard_normal((rows, 3)).astype("float32")
            np.testing.assert_allclose(exe(value), np.tanh(value), rtol=1e-5)

    def test_kernels_that_python_runs_need_all_shapes(self):
        class AnySize(Toolchain):
            name = "python_any_size"
            is_default = False

            def supports_symbolic_sizes(self, call):
                return None

            def relay_to_runtime(self, function, input_layouts, output_layouts, threads):
                return Compiled(b"")

        register_toolchain(AnySize())
        x = relay.var("x", shape=(None, 3))
        with self.assertRaisesRegex(collage.Error, "kernels that Python runs need to know all shapes"):
            collage.compile(relay.Function([x], relay.tanh(x)), threads=1, partition_for="python_any_size")


if __name__ == "__main__":
    unittest.main()
