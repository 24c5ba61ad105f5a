"""Patterns as objects: the texts they give, what they match, what becomes a partition."""

import unittest

import collage
from collage import relay
from collage.relay.dataflow_pattern import (
    any_call,
    dominates,
    has_dtype,
    has_type,
    is_constant,
    is_expr,
    is_function,
    is_if,
    is_let,
    is_op,
    is_tuple,
    is_tuple_get_item,
    is_var,
    parse_pattern,
    partition,
    wildcard,
)


class Texts(unittest.TestCase):
    def test_each_kind_reads_back(self):
        relu = is_op("nn.relu")
        for pattern, text in [
            (wildcard(), "*"),
            (is_constant(), "const"),
            (is_var(), "var"),
            (is_var("x"), "%x"),
            (is_op("nn.relu"), "nn.relu"),
            (relu(wildcard()), "nn.relu(*)"),
            (any_call("nn.conv2d", {"groups": 1}), "nn.conv2d{groups=1}(...)"),
            (is_tuple([wildcard(), is_constant()]), "tuple(*, const)"),
            (is_tuple_get_item(wildcard(), 1), "proj(*, 1)"),
            (is_tuple_get_item(wildcard()), "proj(*)"),
            (relu(wildcard()) | is_constant(), "(nn.relu(*) | const)"),
            ((is_op("add") | is_op("nn.bias_add"))(wildcard(), wildcard()), "(add | nn.bias_add)(*, *)"),
            (relu(wildcard()).optional(lambda x: is_op("tanh")(x)), "tanh?(nn.relu(*))"),
            (is_let(is_var(), wildcard(), wildcard()), "let(var, *, *)"),
            (is_if(is_var(), wildcard(), wildcard()), "if(var, *, *)"),
            (is_function([is_var()], wildcard()), "fn(var -> *)"),
            (is_function(None, wildcard()).has_attr({"Composite": "a"}), "fn{Composite=a}(... -> *)"),
            (
                dominates(relu(wildcard()), wildcard(), is_op("add")(wildcard(), wildcard())),
                "dominates(nn.relu(*), *, add(*, *))",
            ),
            (wildcard().has_dtype("float32"), "*:float32"),
            (has_dtype("int8", is_var()), "var:int8"),
            (wildcard().has_shape([1, None]), "*:[1, ?]"),
            (has_type(relay.TensorType((1, 2), "int8")), "*:[1, 2]int8"),
            (
                is_op("nn.conv2d")(wildcard(), wildcard()).has_attr({"strides": [2, 2], "data_layout": "NCHW"}),
                "nn.conv2d{data_layout=NCHW, strides=[2,2]}(*, *)",
            ),
        ]:
            with self.subTest(text):
                self.assertEqual(str(pattern), text)
                if text != "nn.relu":  # an operator that is not called computes nothing
                    self.assertEqual(str(parse_pattern(text)), text)

    def test_errors(self):
        with self.assertRaisesRegex(collage.InputError, "nn.rel"):
            is_op("nn.rel")
        with self.assertRaisesRegex(collage.InputError, "attributes"):
            is_op("nn.relu").has_attr({"a": 1})
        with self.assertRaisesRegex(collage.InputError, "character"):
            parse_pattern("nn.relu(*")
        with self.assertRaises(TypeError):
            is_op("nn.relu")(1)
        with self.assertRaisesRegex(collage.InputError, "no text"):
            str(is_expr(relay.var("x", shape=(1,))))


class Matching(unittest.TestCase):
    def setUp(self):
        self.x = relay.var("x", shape=(1, 4, 8, 8))
        self.w = relay.const([[[[1.0]]] * 4] * 4)
        self.conv = relay.nn.conv2d(self.x, self.w)

    def test_optional(self):
        pattern = is_op("nn.conv2d")(wildcard(), is_constant()).optional(lambda x: is_op("nn.relu")(x))
        self.assertTrue(pattern.match(self.conv))
        self.assertTrue(pattern.match(relay.nn.relu(self.conv)))
        self.assertFalse(pattern.match(relay.tanh(self.conv)))
        relu = relay.nn.relu(self.conv)
        self.assertEqual(pattern.matches(relu), [[self.w, self.conv, relu]])

    def test_attributes_and_types(self):
        pattern = is_op("nn.conv2d")(wildcard(), wildcard())
        self.assertTrue(pattern.has_attr({"groups": 1, "strides": [1, 1]}).match(self.conv))
        self.assertFalse(pattern.has_attr({"groups": 2}).match(self.conv))
        self.assertTrue(pattern.has_type(relay.TensorType((1, 4, 8, 8))).match(self.conv))
        self.assertTrue(pattern.has_shape([None, 4, None, None]).match(self.conv))
        self.assertFalse(pattern.has_dtype("float16").match(self.conv))

    def test_one_object_is_one_node(self):
        x = wildcard()
        swish = is_op("multiply")(x, is_op("sigmoid")(x))
        self.assertTrue(swish.match(relay.multiply(self.x, relay.sigmoid(self.x))))
        self.assertFalse(swish.match(relay.multiply(self.x, relay.sigmoid(self.conv))))

    def test_this_very_node(self):
        self.assertTrue(is_op("nn.relu")(is_expr(self.conv)).match(relay.nn.relu(self.conv)))
        self.assertFalse(is_op("nn.relu")(is_expr(self.conv)).match(relay.nn.relu(relay.nn.conv2d(self.x, self.w))))

    def test_dominates(self):
        diamond = relay.add(relay.tanh(self.conv), relay.exp(self.conv))
        conv = is_op("nn.conv2d")(wildcard(), wildcard())
        add = is_op("add")(wildcard(), wildcard())
        path = (is_op("tanh") | is_op("exp"))(wildcard())
        self.assertTrue(dominates(conv, path, add).match(diamond))
        self.assertTrue(add.dominates(conv, path).match(diamond))
        self.assertFalse(dominates(conv, is_op("exp")(wildcard()), add).match(diamond))

    def test_control_flow(self):
        c, y = relay.var("c", "bool"), relay.var("y")
        self.assertTrue(is_if(is_var("c"), wildcard(), wildcard()).match(relay.If(c, self.x, self.conv)))
        self.assertTrue(
            is_let(is_var(), wildcard(), is_op("exp")(wildcard())).match(relay.Let(y, self.x, relay.exp(y)))
        )
        self.assertTrue(is_tuple([is_var(), wildcard()]).match(relay.Tuple([self.x, self.conv])))

    def test_partition(self):
        two = relay.nn.relu(relay.nn.conv2d(relay.nn.relu(self.conv), self.w))
        pattern = is_op("nn.relu")(is_op("nn.conv2d")(wildcard(), wildcard()))
        made = partition(pattern, relay.Function([self.x], two), {"Composite": "acme.conv_relu"})
        self.assertEqual(str(made).count('Composite="acme.conv_relu"'), 2)
        self.assertEqual(made.checked_type, relay.Function([self.x], two).infer_type())

    def test_partition_asks_and_leaves_alone(self):
        relu = relay.nn.relu(self.conv)
        pattern = is_op("nn.relu")(is_op("nn.conv2d")(wildcard(), wildcard()))
        seen = []

        def check(function):
            seen.append(str(function.checked_type))
            return False

        self.assertEqual(pattern.partition(relu, {}, check).structural_hash(), relu.structural_hash())
        self.assertEqual(len(seen), 1)
        used_twice = relay.add(relu, self.conv)  # what is inside has another use
        self.assertNotIn("fn", str(pattern.partition(used_twice)))

    def test_errors_of_checks_arrive(self):
        def check(_):
            raise KeyError("mine")

        with self.assertRaises(KeyError):
            is_op("nn.conv2d")(wildcard(), wildcard()).partition(self.conv, {}, check)


if __name__ == "__main__":
    unittest.main()
