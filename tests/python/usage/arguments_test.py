"""Arguments of many functions: names in a list or a text, mappings, models of several kinds."""

import io
import pickle
import unittest

import numpy as np

import collage
from collage import relay, transform
from own_folder import in_folder, setUpModule, tearDownModule  # noqa: F401


def network():
    x = relay.var("x", shape=(2, 8))
    return relay.Function([x], relay.nn.relu(relay.exp(x)))


class Names(unittest.TestCase):
    def test_a_text_is_never_taken_apart_into_letters(self):
        for given in ("native", "native,dnnl", "native, dnnl", ["native"], ("native", "dnnl")):
            names = given.replace(" ", "").split(",") if isinstance(given, str) else list(given)
            with self.subTest(given=given):
                self.assertEqual([row["name"] for row in collage.support(network(), given)["toolchains"]], names)
        exe = collage.compile(network(), threads=1, toolchains="native", require="native", database=in_folder("n.db"))
        self.assertEqual([row["name"] for row in exe.report["toolchains"] if row["takes_part"]], ["native"])
        tables = collage.operator_table("native", "abs, negative", "float32")
        self.assertEqual({row["operator"] for row in tables[0]["rows"]}, {"abs", "negative"})
        model = collage.frontend.to_onnx(network(), output_names="result")
        self.assertEqual(collage.compile(model, threads=1, partition_for="native").outputs[0].name, "result")

    def test_names_of_passes(self):
        module = collage.parse("def @main(%x: float32) { add(%x, add(1f, 2f)) }")
        with transform.PassContext(opt_level=3, disabled_pass="FuseOps,FoldConstant"):
            same = transform.Sequential("FoldConstant")(module)
        self.assertEqual(str(same), str(module))
        for argument in ("required_pass", "disabled_pass"):
            with self.assertRaisesRegex(
                collage.InputError, f"{argument}: error: expected a name or a list of names, got 3"
            ):
                transform.PassContext(**{argument: 3})
        with self.assertRaisesRegex(collage.InputError, "config: error: expected a dict"):
            transform.PassContext(config=["a"])

    def test_others_are_refused(self):
        for given, shown in [
            (3, "3"),
            ([1, "dnnl"], r"\[1, 'dnnl'\]"),
            ({"native": 1}, r"\{'native': 1\}"),
            (b"a", "b'a'"),
        ]:
            problem = f"toolchains: error: expected a name or a list of names, got {shown}"
            with self.subTest(given=given), self.assertRaisesRegex(collage.InputError, problem):
                collage.support(network(), given)
        with self.assertRaisesRegex(collage.InputError, "there is no toolchain 'natve'"):
            collage.support(network(), "natve")


class Mappings(unittest.TestCase):
    def setUp(self):
        self.model = collage.frontend.to_onnx(network())

    def test_a_list_in_place_of_a_dict(self):
        for argument in ("shapes", "dims", "constants", "tune_at", "lengths", "config", "partition_rules"):
            for given in ([1, 8], ["x"], [(1, 8)]):
                with (
                    self.subTest(argument, given=given),
                    self.assertRaisesRegex(collage.InputError, f"^{argument}: error: "),
                ):
                    collage.compile(self.model, threads=1, **{argument: given})
        for argument in ("shapes", "dims", "constants"):
            problem = f"^{argument}: error: expected a dict, got an object of type 'list'\nhint: write {argument}="
            with self.subTest(argument), self.assertRaisesRegex(collage.InputError, problem):
                collage.frontend.from_onnx(self.model, **{argument: [1, 8]})
        with self.assertRaisesRegex(collage.InputError, "shapes: error: expected a dict"):
            collage.support(self.model, shapes=[1, 8])
        with self.assertRaisesRegex(collage.InputError, "shapes: error: expected names as the keys of the dict, got 0"):
            collage.frontend.from_onnx(self.model, shapes={0: (1, 8)})
        for size in (8, "1x8"):
            problem = f"shapes: error: expected shapes by the names of inputs, got 'x': {size!r}"
            with self.assertRaisesRegex(collage.InputError, problem):
                collage.frontend.from_onnx(self.model, shapes={"x": size})
        with self.assertRaisesRegex(collage.InputError, "shapes: error: the shapes of a module are known"):
            collage.support(network(), shapes={"x": (1, 8)})
        exe = collage.compile(network(), threads=1, partition_for="native")
        with self.assertRaisesRegex(collage.InputError, "sizes: error: expected a dict"):
            exe.profile(sizes=[3])


class Errors(unittest.TestCase):
    def test_errors_keep_their_parts_between_processes(self):
        for error in (collage.CorruptError("damaged", "m.clg", "again"), collage.MissingFileError("cannot open", "m.clg")):
            other = pickle.loads(pickle.dumps(error))
            self.assertEqual(type(other), type(error))
            self.assertEqual(
                (str(other), other.message, other.where, other.hint), (str(error), error.message, error.where, error.hint)
            )


class Models(unittest.TestCase):
    def test_models_of_several_kinds(self):
        model = collage.frontend.to_onnx(network())
        path = in_folder("kinds.onnx")
        with open(path, "wb") as file:
            file.write(model)
        x = np.ones((2, 8), "float32")
        with open(path, "rb") as file:
            for given in (path, model, bytearray(model), io.BytesIO(model), file):
                exe = collage.compile(given, threads=1, partition_for="native")
                np.testing.assert_allclose(exe(x), np.exp(x), rtol=1e-6)

    def test_what_is_no_model(self):
        class Module:
            def state_dict(self):
                return {}

        for given, problem in [
            (3, "model: error: expected a path, bytes, an open file or an onnx.ModelProto, got 'int'"),
            (Module(), "got 'Module'\nhint: torch.onnx.export writes a PyTorch model as ONNX"),
        ]:
            with self.assertRaisesRegex(collage.InputError, problem):
                collage.compile(given)
            with self.assertRaisesRegex(collage.InputError, problem):
                collage.frontend.from_onnx(given)


if __name__ == "__main__":
    unittest.main()
