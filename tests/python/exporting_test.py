"""Relay as ONNX: what onnx.checker says, what ONNX Runtime computes."""

import importlib.util
import os
import unittest

import numpy as np

import collage
from collage import frontend, relay
from own_folder import in_folder, setUpModule, tearDownModule  # noqa: F401

MODELS = os.environ.get("COLLAGE_MODELS", os.path.expanduser("~/.cache/collage/models"))


def run_with_onnxruntime(model, inputs):
    import onnxruntime

    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    return session.run(None, dict(zip([one.name for one in session.get_inputs()], inputs)))


class Models(unittest.TestCase):
    @unittest.skipUnless(importlib.util.find_spec("onnxruntime"), "the wheel onnxruntime is not installed")
    def test_small_models_are_valid_and_compute_the_same(self):
        import onnx

        tried = 0
        for name in ["mnist", "squeezenet", "lstm_tagger", "gru_speech", "gpt2", "resnet50_int8", "yolo", "dcgan"]:
            path = os.path.join(MODELS, "small", name)
            if not os.path.exists(path + ".npz"):
                continue
            with self.subTest(name):
                mod = frontend.from_onnx(path + ".onnx")
                model = frontend.to_onnx(mod)
                onnx.checker.check_model(onnx.load_from_string(model), full_check=True)
                arrays = np.load(path + ".npz")
                inputs = [arrays["in." + param.name_hint] for param in mod.main.params]
                wanted = run_with_onnxruntime(path + ".onnx", inputs)  # 8-bit kernels round as no reference does
                for got, want in zip(run_with_onnxruntime(model, inputs), wanted):
                    np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-3 * max(1.0, np.abs(want).max()))
                tried += 1
        if tried == 0:
            self.skipTest("there are no models; run tools/models/prepare-tests")


class Functions(unittest.TestCase):
    def test_bytes_and_files(self):
        import onnx

        x, w = relay.var("x", shape=(2, 8)), relay.const(np.ones((4, 8), "float32"))
        net = relay.Function([x], relay.nn.dense(x, w))
        model = onnx.load_from_string(frontend.to_onnx(net, output_names=["scores"]))
        onnx.checker.check_model(model, full_check=True)
        self.assertEqual([one.name for one in model.graph.output], ["scores"])
        path = in_folder("dense.onnx")
        self.assertIsNone(frontend.to_onnx(collage.IRModule.from_expr(net), path))
        body = frontend.from_onnx(path).main.body
        self.assertEqual(body.op.name, "nn.dense")
        self.assertEqual(body.checked_type.shape, (2, 4))

    def test_refusals_name_the_operator(self):
        x = relay.var("x", shape=(3,), dtype="int64")
        with self.assertRaisesRegex(collage.UnsupportedError, "signed integers of operator 'left_shift'"):
            frontend.to_onnx(relay.Function([x], relay.left_shift(x, x)))
        with self.assertRaisesRegex(collage.InputError, "2 names for 1 results"):
            frontend.to_onnx(relay.Function([x], x), output_names=["a", "b"])


if __name__ == "__main__":
    unittest.main()
