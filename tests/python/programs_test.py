"""Programs: building, text, equality, errors, ONNX."""

import os
import pickle
import unittest

import numpy as np

import collage
from collage import relay

LISTS = """
type List[A] { Cons(A, List[A]), Nil }
def @length[A](%list: List[A]) -> int64 {
  match (%list) { Cons(_, %rest) => { add(1i64, @length(%rest)) }, Nil => { 0i64 } }
}
def @main(%x: int64) -> int64 { @length(Cons(%x, Cons(%x, Nil))) }
"""


class Building(unittest.TestCase):
    def test_call_has_defaults_and_types(self):
        x = relay.var("x", shape=(1, 3, 8, 8))
        w = relay.var("w", shape=(4, 3, 3, 3))
        call = relay.nn.conv2d(x, w, padding=[1, 1])
        self.assertEqual(call.attrs["groups"], 1)
        self.assertEqual(call.op.name, "nn.conv2d")
        self.assertEqual(call.args, [x, w])
        self.assertIsNone(call.checked_type)
        self.assertEqual(str(call.infer_type()), "Tensor[(1, 4, 8, 8), float32]")
        self.assertEqual(call.checked_type, relay.TensorType((1, 4, 8, 8)))

    def test_function_equals_its_text(self):
        x = relay.var("x", shape=(2, 3))
        function = relay.Function([x], relay.multiply(relay.nn.relu(x), relay.const(2.0)))
        text = "def @main(%y: Tensor[(2, 3), float32]) { multiply(nn.relu(%y), 2f) }"
        self.assertTrue(collage.IRModule.from_expr(function).infer_type().structural_equal(collage.parse(text)))
        other = collage.parse(text.replace("2f", "3f"))
        self.assertFalse(collage.IRModule.from_expr(function).structural_equal(other))
        self.assertNotEqual(collage.parse(text).structural_hash(), other.structural_hash())

    def test_sharing_counts(self):
        x = relay.var("x", shape=(2,))
        shared = relay.exp(x)
        once = relay.add(shared, shared)
        twice = relay.add(relay.exp(x), relay.exp(x))
        self.assertFalse(once.structural_equal(twice))
        self.assertTrue(once.structural_equal(relay.add(shared, shared)))
        self.assertNotEqual(once.structural_hash(), twice.structural_hash())
        self.assertEqual(once.args[0], once.args[1])
        self.assertEqual(len({once.args[0], once.args[1], x}), 2)

    def test_let_if_tuple(self):
        x, y = relay.var("x", shape=(2,)), relay.var("y")
        c = relay.var("c", "bool")
        body = relay.Let(y, relay.exp(x), relay.Tuple([y, relay.If(c, x, y)]))
        function = relay.Function([x, c], relay.TupleGetItem(body, 1))
        expected = collage.parse(
            "def @main(%x: Tensor[(2), float32], %c: bool) { let %y = exp(%x); (%y, if (%c) { %x } else { %y }) }"
        )
        made = relay.Function([x, c], body)
        self.assertFalse(made.structural_equal(expected.main))  # %y has no type yet
        made.infer_type()
        self.assertTrue(made.structural_equal(expected.main))
        self.assertEqual(str(function.infer_type()), "fn (Tensor[(2), float32], bool) -> Tensor[(2), float32]")

    def test_match_by_objects_equals_text(self):
        module = collage.parse(LISTS)
        cons, nil = module.constructor("Cons"), module.constructor("Nil")
        data, rest = relay.var("l", module.type_call("List", [relay.TensorType((), "int64")])), relay.var("rest")
        match = relay.Match(
            data,
            [
                (relay.PatternConstructor(cons, [None, rest]), relay.call(relay.GlobalVar("length"), rest)),
                (relay.PatternConstructor(nil), relay.const(0, "int64")),
            ],
        )
        module["first"] = relay.Function([data], match, relay.TensorType((), "int64"))
        text = str(module.infer_type())
        self.assertIn("Cons(_, %rest) =>", text)
        self.assertTrue(collage.parse(text).structural_equal(module))

    def test_constants_are_copies(self):
        array = np.arange(3, dtype="float32")
        constant = relay.const(array)
        array[0] = 7
        self.assertEqual(constant.data.tolist(), [0, 1, 2])
        with self.assertRaises(ValueError):
            constant.data[0] = 1

    def test_dtypes_of_constants(self):
        import ml_dtypes

        for dtype in ("float16", "float64", "int8", "uint8", "int64", "bool"):
            self.assertEqual(str(relay.const(np.ones(2, dtype)).data.dtype), dtype)
        half = relay.const(np.ones(2, ml_dtypes.bfloat16))
        self.assertEqual(half.data.dtype, ml_dtypes.bfloat16)
        self.assertEqual(str(relay.add(half, half).infer_type()), "Tensor[(2), bfloat16]")
        with self.assertRaisesRegex(collage.InputError, "complex64"):
            relay.const(np.ones(2, "complex64"))

    def test_strided_and_empty_arrays(self):
        array = np.arange(6, dtype="int32").reshape(2, 3)
        self.assertEqual(relay.const(array.T).data.tolist(), array.T.tolist())
        self.assertEqual(relay.const(np.zeros((0, 3), "float32")).data.shape, (0, 3))

    def test_every_operator_is_callable_by_name(self):
        for name in relay.op_names():
            found = relay
            for part in name.split("."):
                found = getattr(found, part)
            self.assertEqual(found.op, relay.get_op(name))
            self.assertIn(found.op.doc, found.__doc__)

    def test_deep_chains(self):
        x = relay.var("x", shape=(1,))
        expr = x
        for _ in range(20000):
            expr = relay.exp(expr)
        self.assertEqual(len(expr.post_order()), 20002)
        self.assertEqual(str(expr.infer_type()), "Tensor[(1), float32]")
        del expr


class Text(unittest.TestCase):
    def test_round_trip_keeps_constants(self):
        module = collage.IRModule.from_expr(relay.add(relay.var("x", shape=(2,)), relay.const([1.5, 2.5])))
        self.assertTrue(collage.parse(str(module)).structural_equal(module))
        self.assertNotIn("metadata", module.astext(show_meta_data=False))
        self.assertTrue(pickle.loads(pickle.dumps(module)).structural_equal(module))

    def test_constants_from_outside(self):
        constant = relay.const([1.0, 2.0])
        module = collage.parse("def @main() { meta[relay.Constant][0] }", constants=[constant])
        self.assertEqual(module.main.body, constant)

    def test_modules_are_dictionaries(self):
        module = collage.parse(LISTS)
        self.assertEqual(sorted(module.functions), ["length", "main"])
        self.assertIn("main", module)
        del module["main"]
        self.assertEqual(len(module), 1)
        with self.assertRaisesRegex(collage.InputError, "main"):
            module["main"]
        self.assertEqual(module.type_names, ["List"])


class Errors(unittest.TestCase):
    def test_parser_says_where(self):
        with self.assertRaises(collage.InputError) as caught:
            collage.parse("def @main(%x: float32) {\n  nn.rel(%x)\n}", "m.relay")
        self.assertIn("m.relay:2:3", str(caught.exception))
        self.assertIsInstance(caught.exception, ValueError)

    def test_unknown_names_have_near_misses(self):
        with self.assertRaisesRegex(collage.InputError, "conv2d"):
            relay.get_op("nn.conv2")
        with self.assertRaisesRegex(AttributeError, "no operator 'nn.conv2'"):
            _ = relay.nn.conv2
        with self.assertRaisesRegex(AttributeError, "no such operator"):
            _ = relay.nothing

    def test_wrong_attributes(self):
        x = relay.var("x", shape=(2, 2))
        with self.assertRaisesRegex(collage.InputError, "axes"):
            relay.sum(x, axes=[1])
        with self.assertRaisesRegex(collage.InputError, "keepdims"):
            relay.sum(x, keepdims="yes")

    def test_type_errors(self):
        with self.assertRaisesRegex(collage.InputError, "nn.dense"):
            relay.nn.dense(relay.var("x", shape=(2, 3)), relay.var("w", shape=(2, 4))).infer_type()

    def test_parts_of_an_error(self):
        error = collage.errors.UnsupportedError("no such thing", "here", "do that")
        self.assertEqual((error.message, error.where, error.hint), ("no such thing", "here", "do that"))
        self.assertEqual(str(error), "here: error: no such thing\nhint: do that")
        self.assertIsInstance(error, NotImplementedError)
        self.assertEqual(error.nodes, [])


class Onnx(unittest.TestCase):
    def test_nodes_that_are_not_supported_are_listed(self):
        from onnx import TensorProto, helper

        nodes = [
            helper.make_node("Bogus", ["x"], ["a"], name="first"),
            helper.make_node("Bogus", ["a"], ["b"], name="second"),
            helper.make_node("Gelu", ["b"], ["y"], domain="com.acme", name="third"),
        ]
        x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy")
        model = helper.make_model(helper.make_graph(nodes, "g", [x], [y]))
        with self.assertRaises(collage.UnsupportedError) as caught:
            collage.compile(model.SerializeToString())
        wanted = [("first", "Bogus", ""), ("second", "Bogus", ""), ("third", "com.acme::Gelu", "")]
        self.assertEqual(caught.exception.nodes, wanted)
        self.assertEqual(caught.exception.nodes[2].op, "com.acme::Gelu")
        again = pickle.loads(pickle.dumps(caught.exception))
        self.assertEqual((str(again), again.nodes), (str(caught.exception), wanted))

    def model(self):
        from onnx import TensorProto, helper

        nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Add", ["a", "a"], ["y"])]
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3])
        y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 3])
        graph = helper.make_graph(nodes, "g", [x], [y])
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])

    def test_proto_and_bytes(self):
        expected = collage.parse("def @main(%x: Tensor[(2, 3), float32]) { let %a = nn.relu(%x); add(%a, %a) }")
        expected = collage.transform.ToGraphNormalForm()(expected)
        for model in (self.model(), self.model().SerializeToString()):
            module = collage.frontend.from_onnx(model, shapes={"x": (2, 3)})
            self.assertTrue(module.main.body.structural_equal(module.main.body))
            self.assertEqual([str(p.checked_type) for p in module.main.params], ["Tensor[(2, 3), float32]"])
            found = collage.IRModule.from_expr(relay.Function(module.main.params, module.main.body))
            self.assertTrue(found.structural_equal(expected))

    def test_dimensions_stay_dynamic_or_are_given(self):
        def type_of_x(**options):
            return str(collage.frontend.from_onnx(self.model(), **options).main.params[0].checked_type)

        self.assertEqual(type_of_x(), "Tensor[(?, 3), float32]")
        self.assertEqual(type_of_x(dims={"n": (1, 8)}), "Tensor[(?, 3), float32]")
        self.assertEqual(type_of_x(dims={"x[0]": 5}), "Tensor[(5, 3), float32]")
        with self.assertRaisesRegex(collage.InputError, "the model has no dimension 'y'"):
            collage.frontend.from_onnx(self.model(), dims={"y": 5})

    def test_sequences_are_lists(self):
        from onnx import TensorProto, helper

        nodes = [
            helper.make_node("ConcatFromSequence", ["x"], ["y"], axis=0),
            helper.make_node("SequenceInsert", ["x", "y"], ["s"]),
        ]
        x = helper.make_tensor_sequence_value_info("x", TensorProto.FLOAT, None)
        outputs = [helper.make_empty_tensor_value_info(name) for name in ("y", "s")]
        graph = helper.make_graph(nodes, "g", [x], outputs)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
        module = collage.frontend.from_onnx(model, shapes={"x": [(2,), (3,)]})
        self.assertEqual([param.name_hint for param in module.main.params], ["x.0", "x.1"])
        exe = collage.compile(module, toolchains=["native"])
        a, b = np.arange(2, dtype=np.float32), np.arange(3, dtype=np.float32)
        for results in (exe.run({"x": [a, b]}), exe.run([[a, b]]), dict(zip(["y", "s.0", "s.1", "s.2"], exe([a, b])))):
            self.assertEqual(list(results), ["y", "s.0", "s.1", "s.2"])
            np.testing.assert_array_equal(results["s.2"], np.concatenate([a, b]))
            np.testing.assert_array_equal(results["s.1"], b)
        with self.assertRaisesRegex(collage.InputError, "no value for input 'x.1'"):
            exe.run({"x": [a]})
        with self.assertRaisesRegex(collage.UnsupportedError, "'x' is a sequence of unknown length"):
            collage.frontend.from_onnx(model)
        graph.input.append(helper.make_tensor_value_info("x.0", TensorProto.FLOAT, [2]))
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
        with self.assertRaisesRegex(collage.InputError, "two inputs are called 'x.0'"):
            collage.frontend.from_onnx(model, shapes={"x": [(2,), (3,)]})

    def test_missing_file(self):
        with self.assertRaises(collage.InputError):
            collage.frontend.from_onnx(os.path.join(os.sep, "no", "such.onnx"))


if __name__ == "__main__":
    unittest.main()
