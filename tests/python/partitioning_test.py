"""Rules as objects, candidates, least-cost covers at costs from Python."""

import json
import math
import tempfile
import unittest

import collage
from collage import relay
from collage.relay import collage as parts
from collage.relay.dataflow_pattern import is_op, wildcard
from collage.toolchain import Pattern, Toolchain, register_toolchain
from collage.transform import PassContext, Timing


def network():
    x, w = relay.var("x", shape=(1, 4, 8, 8)), relay.var("w", shape=(4, 4, 1, 1))
    return relay.Function([x, w], relay.nn.relu(relay.nn.conv2d(relay.tanh(x), w)))


def count_operators(function):
    return sum(isinstance(node, relay.Call) and isinstance(node.op, relay.Op) for node in function.post_order())


SINGLE = parts.Primitive(parts.OpCallByKind())
FUSED = parts.Primitive(
    parts.OnlyValid(parts.Combine(parts.OpCallByKind(), [parts.all_simple("A->B", "B->A", "B->B")], max_depth=4))
)


class Rules(unittest.TestCase):
    def test_json_reads_back(self):
        rule = parts.Composite("acme.relu", parts.PatternRule(is_op("nn.relu")(wildcard())))
        text = rule.to_json()
        self.assertEqual(json.loads(text)["sub_rule"], {"rule": "DFPattern", "pattern": "nn.relu(*)"})
        self.assertEqual(parts.Rule.from_json(text).to_json(), text)
        self.assertEqual(parts.candidates(network(), rule), parts.candidates(network(), text))

    def test_every_kind_is_understood(self):
        base = parts.OpCallByKind()
        for rule in [
            parts.OpPredicate("target.openvino"), parts.Host(), parts.Composite("a", base),
            parts.Primitive(base), parts.Union_([base, base]), parts.OnlyValid(base), FUSED,
            parts.Combine(base, [parts.join_anything(), parts.tuple_arg(), parts.tuple_proj(), parts.constant()]),
            parts.MaxCoalesce(base), parts.MaxCoalesce(base, {"max_exits": 1}), parts.VerticalAnchors(base),
            parts.HorizontalAnchors(base, "nn.conv2d"), parts.Maximal(base), parts.TrimFreeEnds(base),
            parts.Proposed(base),
        ]:  # fmt: skip
            with self.subTest(rule.kind):
                self.assertGreater(len(parts.candidates(network(), rule)), 0)

    def test_pattern_tables(self):
        w = relay.const([[[[1.0]]] * 4] * 4)
        x = relay.var("x", shape=(1, 4, 8, 8))
        found = parts.candidates(relay.Function([x], relay.nn.conv2d(x, w)), parts.PatternTable("dnnl"))
        self.assertIn("dnnl.conv2d", [one.rule_name for one in found])
        with self.assertRaisesRegex(collage.InputError, "dnn"):
            parts.candidates(network(), parts.PatternTable("dnn"))
        called = parts.candidates(relay.Function([x], relay.nn.relu(relay.nn.conv2d(x, w))), parts.LibraryCalls("dnnl"))
        self.assertEqual([one.rule_name for one in called], ["dnnl.conv2d_relu"])
        with self.assertRaisesRegex(collage.InputError, "dnn"):
            parts.candidates(network(), parts.LibraryCalls("dnn"))

    def test_candidates_are_what_the_pattern_matches(self):
        found = parts.candidates(network(), parts.PatternRule("nn.relu(nn.conv2d(*, *))"))
        self.assertEqual([(one.label, one.kind, one.depth) for one in found], [("nn.conv2d+nn.relu", "A", 2)])
        labels = {row["i"]: row["label"] for row in parts.dataflow(network())}
        self.assertEqual([labels[index] for index in found[0].inside], ["nn.conv2d", "nn.relu"])

    def test_rewrite(self):
        rule = parts.Composite("acme.conv_relu", parts.PatternRule("nn.relu(nn.conv2d(*, *))"))
        self.assertIn('Composite="acme.conv_relu"', str(parts.rewrite(network(), rule)))
        with self.assertRaisesRegex(collage.InputError, "overlap"):
            parts.rewrite(network(), parts.Primitive(parts.Combine(parts.OpCallByKind(), [parts.join_anything()])))

    def test_malformed_rules(self):
        with self.assertRaisesRegex(collage.InputError, "rule"):
            parts.candidates(network(), '{"rule": "Nothing"}')


class RulesOfOnesOwn(unittest.TestCase):
    def test_a_predicate_chooses_among_matches(self):
        asked = []

        def is_small(match):
            asked.append(str(match.body.checked_type))
            return "it is large" if match.body.checked_type.shape[0] > 2 else None

        x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(3,))
        function = relay.Function([x, y], relay.Tuple([relay.exp(x), relay.exp(y)]))
        rule = parts.PatternRule("exp(*)", predicate=is_small)
        self.assertEqual(len(parts.candidates(function, rule)), 1)
        self.assertEqual(len(asked), 2)
        self.assertEqual(rule.to_json(), parts.PatternRule("exp(*)", predicate=is_small).to_json(), "one name")
        self.assertEqual(len(parts.candidates(function, parts.Composite("c", rule.to_json()))), 1)

    def test_a_base_rule_finds_candidates(self):
        def last(request):
            self.assertEqual(request.candidates, [])
            calls = request.calls()
            return [parts.RuleCandidate(calls[-request.options["count"] :], "mine.last")]

        found = parts.candidates(network(), parts.Registered(last, options={"count": 2}))
        self.assertEqual([(one.rule_name, one.label) for one in found], [("mine.last", "nn.conv2d+nn.relu")])
        parts.register_rule("mine.last", last)
        by_name = '{"rule": "Registered", "function": "mine.last", "options": {"count": 3}}'
        self.assertEqual(parts.candidates(network(), by_name)[0].label, "tanh+nn.conv2d+nn.relu")
        with self.assertRaisesRegex(collage.InputError, "registered already"):
            parts.register_rule("mine.last", last)
        with self.assertRaisesRegex(collage.InputError, "no registered rule 'mine.lats'"):
            parts.candidates(network(), parts.Registered("mine.lats"))

    def test_a_rule_makes_candidates_of_others(self):
        def joined(request):
            inside = [expr for one in request.candidates for expr in one.inside]
            return [parts.RuleCandidate(inside, made_of=range(len(request.candidates)))]

        composites = parts.Union_(
            [parts.Composite("c.tanh", parts.PatternRule("tanh(*)")),
             parts.Composite("c.conv", parts.PatternRule("nn.conv2d(*, *)"))]
        )  # fmt: skip
        text = str(parts.rewrite(network(), parts.Primitive(parts.Registered(joined, composites))))
        self.assertIn('Composite="c.tanh"', text)
        self.assertIn('Composite="c.conv"', text)
        self.assertEqual(text.count("Primitive=1"), 1)

    def test_a_combiner_is_asked_until_nothing_is_new(self):
        def neighbours(request):
            for i, one in enumerate(request.candidates):
                for other in request.candidates[max(i + 1, request.first_new) :]:
                    if not any(expr is inner for expr in one.inside for inner in other.inside):
                        yield [*one.inside, *other.inside]

        rule = parts.Combine(parts.OpCallByKind(), [parts.registered(neighbours)])
        labels = {one.label for one in parts.candidates(network(), rule)}
        self.assertIn("tanh+nn.conv2d+nn.relu", labels)

    def test_mistakes_are_told(self):
        with self.assertRaisesRegex(collage.InputError, "no node of the function"):
            parts.candidates(network(), parts.Registered(lambda request: [[relay.exp(relay.var("y", shape=(2,)))]]))
        with self.assertRaisesRegex(ZeroDivisionError, "zero"):
            parts.candidates(network(), parts.Registered(lambda request: [1 / 0]))

    def test_a_compilation_by_rules_of_ones_own(self):
        def pairs(request):
            return [[one, one.args[0]] for one in request.calls() if isinstance(one.args[0], relay.Call)]

        parts.register_rule("mine.pairs", pairs)
        rule = '{"rule": "Registered", "function": "mine.pairs"}'
        x = relay.var("x", shape=(4, 6))
        function = relay.Function([x], relay.exp(relay.nn.softmax(relay.tanh(relay.nn.softmax(x)))))
        with tempfile.TemporaryDirectory() as folder:
            executable = collage.compile(
                function,
                target=[f"llvm -partition_rule='{rule}'"],
                threads=1,
                database=f"{folder}/tuning.db",
            )
            both = collage.compile(
                function,
                target=["llvm", f"llvm -partition_rule='{rule}'"],
                threads=1,
                database=f"{folder}/tuning.db",
            )
        self.assertEqual([one.operators for one in executable.partitions], ["nn.softmax+tanh", "nn.softmax+exp"])
        self.assertGreater(both.report["search"]["candidates"], executable.report["search"]["candidates"])


class Partitioning(unittest.TestCase):
    def test_mock_costs_decide(self):
        asked = []

        def cost(function, target):
            asked.append(target)
            return {"one": 1.0 * count_operators(function), "all": 2.5}[target]

        targets = [parts.RuleTarget("one", SINGLE), parts.RuleTarget("all", FUSED, external=False)]
        cover = parts.partition(network(), targets, cost=cost)
        self.assertEqual(cover.cost, 2.5)
        self.assertEqual(
            [(part.target, part.ops) for part in cover.partitions], [("all", ["tanh", "nn.conv2d", "nn.relu"])]
        )
        self.assertEqual(cover.next_best_cost, 3.0)
        self.assertGreaterEqual(asked.count("one"), 3)
        self.assertIn("Primitive=1", str(cover.function))
        self.assertEqual(cover.function.checked_type, network().infer_type())

    def test_penalty_and_external(self):
        targets = [parts.RuleTarget("acme", FUSED)]
        cover = parts.partition(network(), targets, cost=lambda function, target: 1.0, transition_penalty=0.25)
        self.assertEqual(cover.cost, 1.25)
        self.assertIn('Compiler="acme"', str(cover.function))

    def test_formula_equals_callable(self):
        targets = [parts.RuleTarget("acme", SINGLE)]
        formula = parts.partition(network(), targets, cost={"op_cost": {"acme": 3}})
        called = parts.partition(network(), targets, cost=lambda function, target: 3.0)
        self.assertEqual((formula.cost, formula.partitions), (called.cost, called.partitions))

    def test_infinite_costs_leave_no_cover(self):
        with self.assertRaisesRegex(collage.UnsupportedError, "infinite cost"):
            parts.partition(network(), [parts.RuleTarget("acme", SINGLE)], cost=lambda function, target: math.inf)

    def test_estimator_objects_and_their_errors(self):
        class Estimator:
            def __init__(self):
                self.labels = []

            def __call__(self, function, target):
                self.labels.append(target)
                return 1.0

        estimator = Estimator()
        parts.partition(network(), [parts.RuleTarget("acme", SINGLE)], cost=estimator)
        self.assertEqual(len(estimator.labels), 3)
        with self.assertRaisesRegex(collage.InputError, "not negative"):
            parts.partition(network(), [parts.RuleTarget("acme", SINGLE)], cost=lambda function, target: -1.0)

        def broken(function, target):
            raise ZeroDivisionError("mine")

        with self.assertRaises(ZeroDivisionError):
            parts.partition(network(), [parts.RuleTarget("acme", SINGLE)], cost=broken)


class Biased(Toolchain):
    """Takes a shift per channel in the form that CanonicalizeOps, its preamble, makes of bias_add."""

    name = "biased"
    preamble = ["CanonicalizeOps"]

    def pattern_table(self):
        return [Pattern("biased.dense", "add(nn.dense(*, *), *)")]


class Hasty(Biased):
    name = "hasty"
    preamble = ["CanonicaliseOps"]


register_toolchain(Biased())
register_toolchain(Hasty())


def biased_dense():
    x, w, b = relay.var("x", shape=(2, 4)), relay.var("w", shape=(3, 4)), relay.var("b", shape=(3,))
    scale = relay.add(relay.const([1.0] * 3), relay.const([1.0] * 3))
    dense = relay.nn.bias_add(relay.nn.dense(x, w), relay.multiply(b, scale))
    return collage.IRModule.from_expr(relay.Function([x, w, b], relay.nn.relu(dense)))


def toolchains_of(mod):
    return [one.attrs["Compiler"] for one in mod.functions.values() if "Compiler" in one.attrs]


class ForOneToolchain(unittest.TestCase):
    def test_the_preamble_makes_patterns_match(self):
        optimized = parts.optimize_for(biased_dense(), "biased")
        self.assertNotIn("bias_add", str(optimized))
        self.assertEqual(toolchains_of(optimized), [])
        partitioned = parts.partition_for(biased_dense(), "biased")
        self.assertEqual(toolchains_of(partitioned), ["biased"])
        self.assertIn('Composite="biased.dense"', str(partitioned))

    def test_the_current_context_holds(self):
        with PassContext(disabled_pass=["CanonicalizeOps"]):
            self.assertIn("bias_add", str(parts.optimize_for(biased_dense(), "biased")))
            self.assertEqual(toolchains_of(parts.partition_for(biased_dense(), "biased")), [])
        timing = Timing()
        with PassContext(opt_level=0, instruments=[timing]):
            self.assertEqual(toolchains_of(parts.partition_for(biased_dense(), "biased")), ["biased"])
        self.assertIn("CanonicalizeOps", timing.seconds)
        self.assertIn("PartitionGraph", timing.seconds)
        self.assertNotIn("FoldConstant", timing.seconds)
        timing = Timing()
        with PassContext(instruments=[timing]):
            parts.optimize_for(biased_dense(), "biased")
        self.assertIn("FoldScaleAxis", timing.seconds)

    def test_every_toolchain_has_functions_of_its_name(self):
        for name in [row["name"] for row in collage.toolchains()]:
            if name == "hasty":
                continue
            with self.subTest(name):
                for prefix, of_any in [("partition_for_", parts.partition_for), ("optimize_for_", parts.optimize_for)]:
                    of_one = getattr(parts, prefix + name)
                    self.assertEqual(of_one.__name__, prefix + name)
                    self.assertIn(prefix + name, dir(parts))
                    self.assertEqual(str(of_one(biased_dense())), str(of_any(biased_dense(), name)))

    def test_names_that_there_are_not(self):
        for mistake in ["partition_for_dnn", "optimize_for_dnn"]:
            with self.assertRaisesRegex(
                AttributeError, f"'{mistake}': there is no toolchain 'dnn', there are native, .*biased"
            ):
                getattr(parts, mistake)
        with self.assertRaisesRegex(AttributeError, "has no attribute 'partition_with'"):
            _ = parts.partition_with
        for of_any in [parts.optimize_for, parts.partition_for]:
            with self.assertRaisesRegex(collage.InputError, "there is no toolchain 'acme'") as caught:
                of_any(biased_dense(), "acme")
            self.assertRegex(caught.exception.hint, "there are: native, .*biased")
            with self.assertRaisesRegex(collage.InputError, "preamble of toolchain 'hasty'.*'CanonicaliseOps'"):
                of_any(biased_dense(), "hasty")


if __name__ == "__main__":
    unittest.main()
