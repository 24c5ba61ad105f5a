"""RFC 10's hooks in Python, with options, schedules and proposals."""

import subprocess
import sys
import time
import unittest

import numpy as np

import collage
from collage import relay
from collage.toolchain import (
    Compiled,
    LibraryFunction,
    Lowered,
    Option,
    Pattern,
    Toolchain,
    declare_functions,
    register_toolchain,
    why_functions_missing,
)
from own_folder import in_folder, setUpModule, tearDownModule  # noqa: F401

COSINE = LibraryFunction("libm.so.6", "cosf", "(f32) -> f32", "install libm")


def calls(function):
    return [node for node in function.post_order() if isinstance(node, relay.Call) and isinstance(node.op, relay.Op)]


def note(file, text):
    """Appends a line to a file: hooks are called in other processes."""
    with open(in_folder(file), "a") as notes:
        notes.write(text + "\n")


def notes_of(file):
    with open(in_folder(file)) as notes:
        return notes.read().split()


class Loops(Toolchain):
    """Cosines, as loops that call a C library, times a factor."""

    name = "loops"
    option_table = (
        Option("factor", 1, "what results are multiplied by"),
        Option("library", COSINE.library, "where it is"),
    )

    def supports_call(self, call):
        return None if call.op.name == "cos" else f"takes cos, not {call.op.name}"

    def relay_to_tir(self, request):
        count = int(np.prod(request.function.body.checked_type.shape))
        function = LibraryFunction(self.options["library"], COSINE.symbol, COSINE.signature, COSINE.hint)
        return Lowered(
            declare_functions([function])
            + f"""
func.func @collage_kernel(%buffers: !llvm.ptr) {{
  %begin = arith.constant 0 : index
  %step = arith.constant 1 : index
  %end = arith.constant {count} : index
  %factor_slot = llvm.getelementptr %buffers[1] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
  %to_slot = llvm.getelementptr %buffers[2] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
  %from = llvm.load %buffers : !llvm.ptr -> !llvm.ptr
  %factors = llvm.load %factor_slot : !llvm.ptr -> !llvm.ptr
  %to = llvm.load %to_slot : !llvm.ptr -> !llvm.ptr
  %factor = llvm.load %factors : !llvm.ptr -> f32
  scf.for %i = %begin to %end step %step {{
    %at = arith.index_cast %i : index to i64
    %read = llvm.getelementptr %from[%at] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %write = llvm.getelementptr %to[%at] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %x = llvm.load %read : !llvm.ptr -> f32
    %cosine = func.call @cosf(%x) : (f32) -> f32
    %y = arith.mulf %cosine, %factor : f32
    llvm.store %y, %write : f32, !llvm.ptr
  }}
  return
}}""",
            [np.array([self.options["factor"]], "float32")],
        )


class Interpreted(Toolchain):
    """Loops in a language of its own, which its own code generator reads."""

    name = "interpreted"

    def supports_call(self, call):
        return None if call.op.name in ("exp", "sqrt") else f"does not take {call.op.name}"

    def relay_to_tir(self, request):
        return Lowered(" ".join(call.op.name for call in calls(request.function)), workspace_bytes=8)

    def tir_to_runtime(self, lowered):
        return Compiled(f"{lowered.mlir} {lowered.workspace_bytes}".encode())

    def load(self, blob, constants, threads):
        functions = {"exp 8": np.exp, "sqrt 8": np.sqrt}
        return lambda inputs, outputs: functions[blob.decode()](inputs[0], out=outputs[0])


class Dense(Toolchain):
    """Products by transposed weights, exchanged where a product of equal shapes is there."""

    name = "dense"

    def pattern_table(self):
        return [Pattern("dense.dense", "nn.dense(*, const)")]

    def constants(self, function):
        return [node.data.T.copy() for node in function.post_order() if isinstance(node, relay.Constant)]

    def relay_to_runtime(self, function, input_layouts, output_layouts, threads):
        note("dense", f"compiled-{function.params[0].checked_type.shape[0]}")
        return Compiled(b"product", self.constants(function), source="a product")

    def update_constants(self, request, compiled):
        note("dense", "updated")
        if (
            compiled.blob != b"product"
            or compiled.source != "a product"
            or compiled.loader
            or len(compiled.constants) != 1
        ):
            raise ValueError(f"not what was compiled: {compiled}")
        return self.constants(request.function)

    def load(self, blob, constants, threads):
        return lambda inputs, outputs: np.matmul(inputs[0], constants[0], out=outputs[0])


class Scheduled(Toolchain):
    """Slow, unless a schedule says otherwise."""

    name = "scheduled"
    loaded: list[bytes] = []

    def supports_call(self, call):
        return None if call.op.name == "tanh" else f"takes tanh, not {call.op.name}"

    def schedules(self, request):
        if request.schedule:
            raise collage.UnsupportedError("no more of them")
        return ["broken", "fast"]

    def relay_to_runtime(self, function, input_layouts, output_layouts, threads, schedule):
        if schedule == "broken":
            raise collage.UnsupportedError("schedule 'broken' is")
        return Compiled(schedule.encode())

    def load(self, blob, constants, threads):
        self.loaded.append(blob)

        def run(inputs, outputs):
            if blob != b"fast":
                end = time.perf_counter() + 2e-3
                while time.perf_counter() < end:
                    pass
            np.tanh(inputs[0], out=outputs[0])

        return run


class Pairs(Toolchain):
    """Takes single operators, and pairs of them by proposals only."""

    name = "pairs"
    fusion = "tvm"
    max_depth = 1

    def supports_call(self, call):
        return None if call.op.name in ("floor", "ceil") else f"does not take {call.op.name}"

    def proposals(self, function):
        found = [call for call in calls(function) if call.op.name in ("floor", "ceil")]
        return [found] if len(found) == 2 else []

    def relay_to_runtime(self, function, input_layouts, output_layouts, threads):
        return Compiled(" ".join(call.op.name for call in calls(function)).encode())

    def load(self, blob, constants, threads):
        def run(inputs, outputs):
            value = inputs[0]
            for name in blob.decode().split():
                value = getattr(np, name)(value)
            outputs[0][...] = value

        return run


for kind in (Loops, Interpreted, Dense, Scheduled, Pairs):
    kind.is_default = False
    register_toolchain(kind())


def network(op, rows=3):
    x = relay.var("x", shape=(rows, 8))
    return relay.Function([x], op(x))


def alone(net, name, path=None, **settings):
    return collage.compile(net, path, threads=1, partition_for=name, **settings)


X = np.random.default_rng(1).uniform(0.1, 2, (3, 8)).astype("float32")


class Hooks(unittest.TestCase):
    def test_are_those_that_are_overridden(self):
        rows = {row["name"]: row["hooks"] for row in collage.toolchains()}
        self.assertEqual(rows["loops"], ["RelayToTIR"])
        self.assertEqual(rows["interpreted"], ["RelayToTIR", "TIRToRuntime"])
        self.assertEqual(rows["dense"], ["RelayToRuntime", "UpdateConstants"])

    def test_loops_call_a_c_library_and_run_without_python(self):
        path = in_folder("loops.clg")
        exe = alone(network(relay.cos), "loops", path)
        self.assertEqual([part.toolchain for part in exe.partitions], ["loops"])
        np.testing.assert_allclose(exe(X), np.cos(X), rtol=1e-6)
        code = f"import collage, numpy; print(collage.load({path!r})(numpy.zeros((3, 8), 'float32'))[0, 0])"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        self.assertEqual(done.stdout, "1.0\n", done.stderr)

    def test_a_library_that_is_missing_is_named(self):
        report = alone(network(relay.cos), "loops -library=libnobodys.so").report
        self.assertIn("a kernel calls 'cosf' of 'libnobodys.so': cannot open library", str(report["failures"]))
        self.assertIn("'libnobodys.so'", why_functions_missing([LibraryFunction("libnobodys.so", "f", "() -> ()")]))
        self.assertIsNone(why_functions_missing([COSINE]))
        with self.assertRaisesRegex(collage.InputError, "has the signature 'float', which is none"):
            declare_functions([LibraryFunction("libm.so.6", "cosf", "float")])

    def test_a_code_generator_of_its_own_compiles_loops(self):
        exe = alone(network(lambda x: relay.sqrt(relay.exp(x))), "interpreted")
        self.assertEqual([part.toolchain for part in exe.partitions], ["interpreted", "interpreted"])
        np.testing.assert_allclose(exe(X), np.sqrt(np.exp(X)), rtol=1e-6)

    def test_equal_partitions_are_compiled_once(self):
        random = np.random.default_rng(4)
        weights = [random.standard_normal((8, 8)).astype("float32") for _ in range(3)]
        x = relay.var("x", shape=(3, 8))
        body = x
        for weight in weights:
            body = relay.tanh(relay.nn.dense(body, relay.const(weight)))
        exe = alone(relay.Function([x], body), "dense")
        self.assertEqual([part.toolchain for part in exe.partitions].count("dense"), 3)
        expected = X
        for weight in weights:
            expected = np.tanh(expected @ weight.T)
        np.testing.assert_allclose(exe(X), expected, rtol=1e-4, atol=1e-5)
        # One of the three is compiled; what a call costs at least is found by a smaller one. Nothing else is asked for.
        self.assertEqual(sorted(notes_of("dense")), ["compiled-1", "compiled-3", "updated", "updated"])

    def test_mistakes(self):
        class Both(Toolchain):
            name = "both"
            relay_to_runtime = Dense.relay_to_runtime
            relay_to_tir = Loops.relay_to_tir

        class NoLoops(Toolchain):
            name = "no_loops"
            tir_to_runtime = Interpreted.tir_to_runtime

        class Unasked(Toolchain):
            name = "unasked"
            proposals = Pairs.proposals

        class Odd(Toolchain):
            name = "odd_option"
            option_table = (Option("size", (1, 2), ""),)

        for kind, message in [
            (Both, "toolchain 'both' has both relay_to_tir and relay_to_runtime: one of them compiles"),
            (NoLoops, "toolchain 'no_loops' has tir_to_runtime, but no relay_to_tir that writes loops"),
            (Unasked, "toolchain 'unasked' has proposals, which nobody asks for with fusion 'none'"),
            (Odd, "option 'size' has a default that is no bool, int, float or str"),
        ]:
            with self.assertRaisesRegex(collage.InputError, message):
                register_toolchain(kind())


class Options(unittest.TestCase):
    def test_have_their_defaults_or_what_a_target_says(self):
        self.assertEqual(Loops().options, {"factor": 1, "library": "libm.so.6"})
        self.assertEqual(Loops().with_options({"factor": 3, "library": "a"}).options, {"factor": 3, "library": "a"})
        rows = {row["name"]: row["options"] for row in collage.toolchains()}
        self.assertEqual(
            [(row["name"], row["default"]) for row in rows["loops"]], [("factor", "1"), ("library", "libm.so.6")]
        )

    def test_reach_the_hooks(self):
        report = alone(network(relay.cos), "loops -factor=3").report
        wrong = "wrong result 0 on random inputs within 1, element 0 of 24: got 2.9.*, wanted 0.966"
        self.assertRegex(str(report["failures"]), wrong)
        self.assertIn("loops -factor=3", str(report["failures"]))

    def test_that_do_not_exist_are_refused(self):
        with self.assertRaisesRegex(collage.InputError, "there is no option 'facter' of 'loops'"):
            alone(network(relay.cos), "loops -facter=3")


class Schedules(unittest.TestCase):
    def test_are_tried_and_the_fastest_is_kept(self):
        settings = {"database": in_folder("schedules.db")}
        report = alone(network(relay.tanh), "scheduled", tuning_budget="10trials", **settings).report
        self.assertEqual((report["tuning"]["trials"], report["tuning"]["faster"]), (2, 1))
        exe = alone(network(relay.tanh), "scheduled", **settings)
        Scheduled.loaded.clear()
        np.testing.assert_allclose(exe(X), np.tanh(X), rtol=1e-6)
        self.assertEqual(set(Scheduled.loaded), {b"fast"})


class Proposals(unittest.TestCase):
    def test_are_candidates(self):
        exe = alone(network(lambda x: relay.floor(relay.ceil(x))), "pairs")
        self.assertEqual([(part.toolchain, part.operators) for part in exe.partitions], [("pairs", "ceil+floor")])
        np.testing.assert_array_equal(exe(X), np.ceil(X))


if __name__ == "__main__":
    unittest.main()
