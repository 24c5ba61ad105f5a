"""Toolchains from Python: hooks, kernels, workers, failures; those that the command has, too."""

import json
import os
import subprocess
import sys
import threading
import unittest

import numpy as np

import collage
from collage import relay
from collage.toolchain import Availability, Compiled, Pattern, Toolchain, register_toolchain
from own_folder import in_folder, setUpModule, tearDownModule  # noqa: F401


class NumPy(Toolchain):
    """Computes relu, and a product with relu, by NumPy."""

    name = "numpy"
    description = "NumPy, for tests"
    priority = 50

    def probe(self):
        return Availability(True, np.__version__)

    def pattern_table(self):
        def of_rank_2(function):
            rank = len(function.body.checked_type.shape)
            return None if rank == 2 else f"takes matrices, not tensors of rank {rank}"

        return [Pattern("numpy.dense_relu", "nn.relu(nn.dense(*, const))", of_rank_2),
                Pattern("numpy.relu", "nn.relu(*)", of_rank_2)]  # fmt: skip

    def relay_to_runtime(self, function, input_layouts, output_layouts, threads):
        nodes = list(function.post_order())
        constants = [node.data for node in nodes if isinstance(node, relay.Constant)]
        if any(isinstance(node, relay.Call) and node.checked_type.shape[0] == 5 for node in nodes):
            raise collage.UnsupportedError("five rows are too many")
        if any(isinstance(node, relay.Call) and node.checked_type.shape[0] == 6 for node in nodes):
            os._exit(7)
        return Compiled(b"dense" if constants else b"relu", constants, source="def run(): ...")

    def load(self, blob, constants, threads):
        if blob == b"dense":
            weight = constants[0]
            return lambda inputs, outputs: np.maximum(inputs[0] @ weight.T, 0, out=outputs[0])
        return lambda inputs, outputs: np.maximum(inputs[0], 0, out=outputs[0])


class Wrong(Toolchain):
    name = "wrong"

    def supports_call(self, call):
        return None if call.op.name == "nn.relu" else f"takes nn.relu, not {call.op.name}"

    def relay_to_runtime(self, function, input_layouts, output_layouts, threads):
        return Compiled(b"")

    def load(self, blob, constants, threads):
        def run(inputs, outputs):
            outputs[0][...] = 1e6

        return run


register_toolchain(NumPy())
register_toolchain(Wrong())


def network(rows=2):
    x = relay.var("x", shape=(rows, 8))
    w = relay.const(np.random.default_rng(3).standard_normal((4, 8)).astype("float32"))
    return relay.Function([x], relay.exp(relay.nn.relu(relay.nn.dense(x, w))))


def available(name):
    return any(row["name"] == name and row["available"] for row in collage.toolchains())


def expected(net, x):
    weight = next(node for node in net.post_order() if isinstance(node, relay.Constant)).data
    return np.exp(np.maximum(x @ weight.T, 0))


def prefers(name):
    """Costs that make one toolchain the cheapest by far."""
    return lambda mod, target: 1e-9 if target.compiler == name else 1e-3


class FromPython(unittest.TestCase):
    def test_takes_part_and_is_measured(self):
        report = collage.compile(network(), threads=1, toolchains=["numpy"]).report
        rows = {row["name"]: row for row in report["toolchains"]}
        self.assertTrue(rows["numpy"]["takes_part"])
        self.assertEqual(rows["numpy"]["version"], np.__version__)
        single = next(one for one in report["play_off"] if one["name"] == "numpy")
        self.assertEqual(single["failure"], "")
        self.assertEqual(single["partitions"], {"numpy": 1, "native": 1})

    def test_partitions_that_it_runs_are_right(self):
        net = network()
        exe = collage.compile(net, threads=1, partition_for="numpy")
        self.assertEqual([part.toolchain for part in exe.partitions], ["numpy", "native"])
        x = np.random.default_rng(1).standard_normal((2, 8)).astype("float32")
        np.testing.assert_allclose(exe(x), expected(net, x), rtol=1e-5)
        run = exe.instance()
        run.set_input(0, x)
        run.run()
        run.run()
        np.testing.assert_allclose(run.output(0), expected(net, x), rtol=1e-5)

    def test_patterns_for_searches_only(self):
        class Sparing(NumPy):
            name = "sparing"

            def pattern_table(self):
                return [Pattern("sparing.relu", "nn.relu(*)", is_greedy=False)]

        register_toolchain(Sparing())
        exe = collage.compile(network(), threads=1, partition_for="sparing")
        self.assertEqual({part.toolchain for part in exe.partitions}, {"native"})
        self.assertEqual(collage.support(network(), ["sparing"])["toolchains"][0]["taken"], 1)

    def test_several_threads_at_once(self):
        net = network()
        exe = collage.compile(net, threads=1, partition_for="numpy")
        failures = []

        def work(seed):
            x = np.random.default_rng(seed).standard_normal((2, 8)).astype("float32")
            for _ in range(50):
                if not np.allclose(exe(x), expected(net, x), rtol=1e-4):
                    failures.append(seed)

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])

    def test_compiling_while_other_threads_of_python_run(self):
        stop = threading.Event()

        def spin():
            while not stop.is_set():
                sum(range(1000))

        spinner = threading.Thread(target=spin)
        spinner.start()
        try:
            exe = collage.compile(network(3), threads=1, partition_for="numpy", database=in_folder("spin.db"))
        finally:
            stop.set()
            spinner.join()
        self.assertEqual(exe.partitions[0].toolchain, "numpy")

    def test_refusals_and_crashes_are_kept_as_reasons(self):
        for rows, reason in [(5, "five rows are too many"), (6, "exit code 7")]:
            report = collage.compile(network(rows), threads=1, toolchains=["numpy"], database=in_folder("no.db")).report
            self.assertIn(reason, str(report["failures"]))
            self.assertEqual(report["play_off"][0]["failure"], "")

    def test_wrong_results_do_not_win(self):
        report = collage.compile(network(), threads=1, toolchains=["wrong"]).report
        self.assertNotIn(
            "wrong", next(one for one in report["play_off"] if one["name"] == report["winner"])["partitions"]
        )
        self.assertIn("wrong", str(report["failures"]))

    def test_predicates_say_why_not(self):
        x = relay.var("x", shape=(2, 3, 4))
        report = collage.support(relay.Function([x], relay.nn.relu(x)), ["numpy", "wrong"])
        numpy, wrong = report["toolchains"]
        self.assertEqual((numpy["taken"], wrong["taken"]), (0, 1))
        self.assertEqual(numpy["operators"][0]["refused"][0]["reason"], "takes matrices, not tensors of rank 3")

    def test_an_executable_elsewhere_says_what_it_lacks(self):
        path = in_folder("numpy.clg")
        collage.compile(network(), path, threads=1, partition_for="numpy")
        code = f"import collage, numpy; collage.load({path!r})(numpy.ones((2, 8), 'float32'))"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        lacks = "kernels of toolchain 'numpy' are run by Python, and it is not registered"
        self.assertIn(f"UnavailableError: {path}: error: {lacks}", done.stderr)

    def test_workers_of_their_own(self):
        code = ("import json, subprocess, sys\n"
                "p = subprocess.run([sys.executable, '-m', 'collage', 'worker'], input='', capture_output=True, text=True)\n"
                "hello = json.loads(p.stdout.splitlines()[0]); print(sorted(hello['toolchains']))")  # fmt: skip
        environment = {**os.environ, "COLLAGE_TOOLCHAINS": "toolchains_test"}
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
        self.assertIn("'numpy'", done.stdout, done.stderr)

    def test_a_probe_that_fails_is_a_reason(self):
        class Lost(Toolchain):
            name = "lost"

            def probe(self):
                raise OSError("no such library")

        register_toolchain(Lost())
        row = next(row for row in collage.toolchains() if row["name"] == "lost")
        self.assertEqual((row["available"], row["reason"]), (False, "its probe raised OSError: no such library"))

    def test_mistakes(self):
        with self.assertRaisesRegex(collage.InputError, "registered already"):
            register_toolchain(NumPy())
        with self.assertRaisesRegex(collage.InputError, "Toolchain has no name"):
            register_toolchain(Toolchain())

        class Odd(Toolchain):
            name = "odd"
            fusion = "wild"

        with self.assertRaisesRegex(collage.InputError, "there is no fusion style 'wild'"):
            register_toolchain(Odd())


class BuiltIn(unittest.TestCase):
    def test_the_command_has_the_same_and_takes_the_same_by_default(self):
        code = "import collage, json; print(json.dumps(collage.toolchains()))"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        program = os.path.join(os.path.dirname(collage.__file__), "..", "..", "bin", "collage")
        listed = subprocess.run([program, "targets", "--json"], capture_output=True, text=True, check=True)
        self.assertEqual(json.loads(done.stdout), json.loads(listed.stdout)["toolchains"])

    @unittest.skipUnless(available("onnxruntime"), "ONNX Runtime is not here")
    def test_onnx_runtime_is_measured_and_competes(self):
        import onnxruntime

        report = collage.compile(network(), threads=1, toolchains=["onnxruntime"]).report
        row = next(row for row in report["toolchains"] if row["name"] == "onnxruntime")
        self.assertEqual(row["version"], onnxruntime.__version__)
        single = next(one for one in report["play_off"] if one["name"] == "onnxruntime")
        self.assertEqual((single["failure"], single["partitions"]), ("", {"onnxruntime": 1}))

    @unittest.skipUnless(available("onnxruntime"), "ONNX Runtime is not here")
    def test_onnx_runtime_reports_nothing_and_leaves_nothing(self):
        folder = in_folder("reports")
        os.mkdir(folder)
        with open(in_folder("reports.onnx"), "wb") as file:
            file.write(collage.frontend.to_onnx(network()))
        program = os.path.join(os.path.dirname(collage.__file__), "..", "..", "bin", "collage")
        command = [program, "compile", in_folder("reports.onnx"), "-o", in_folder("reports.clg"), "--quiet"]
        quiet = {"CI", "ORT_DISABLE_TELEMETRY"}  # with either it reports nothing by itself
        environment = {name: value for name, value in os.environ.items() if name not in quiet} | {"TMPDIR": folder}
        subprocess.run(
            [*command, "--partition-for", "onnxruntime", "--threads", "1"],
            env=environment,
            check=True,
            capture_output=True,
        )
        self.assertEqual(os.listdir(folder), [])


class Searches(unittest.TestCase):
    def test_a_callable_chooses_the_cover(self):
        seen = {}

        def singles(task):
            seen["positions"] = task.num_positions
            cover = []
            for position in range(task.num_positions):
                cover.append(next(c for c in range(task.num_candidates)
                                  if task.positions(c) == [position] and task.toolchain(c) == "native"))  # fmt: skip
            seen["seconds"] = task.seconds(cover)
            seen["sum"] = sum(task.cost(c) for c in cover)
            self.assertLessEqual(task.lower_bound(cover[0]), task.cost(cover[0]))
            seen["task"] = task
            return [cover]

        report = collage.compile(network(), threads=1, toolchains=["native"], search=singles).report
        chosen = next(one for one in report["play_off"] if one["name"] == "collage")
        self.assertEqual(chosen["partitions"], {"native": 3})
        self.assertEqual(seen["positions"], 3)
        self.assertGreaterEqual(seen["seconds"], seen["sum"])
        with self.assertRaisesRegex(collage.InputError, "has ended"):
            seen["task"].cost(0)

    def test_what_is_no_cover_is_refused(self):
        for covers, message in [([[]], "position 0 is not covered"), ([[10**6]], "there is no candidate 1000000")]:
            with self.assertRaisesRegex(collage.InputError, message):
                collage.compile(network(), threads=1, toolchains=["native"], search=lambda task, covers=covers: covers)

    def test_what_it_raises_arrives(self):
        def broken(task):
            raise ZeroDivisionError("mine")

        with self.assertRaisesRegex(ZeroDivisionError, "mine"):
            collage.compile(network(), threads=1, toolchains=["native"], search=broken)


class EndTest(unittest.TestCase):
    """Objects that live until a process ends; nanobind reports them on standard error."""

    BEGIN = """
import sys, collage
from collage import relay
from collage.toolchain import Toolchain, register_toolchain
x = relay.var("x", shape=(2, 3), dtype="float32")
net = relay.Function([x], relay.nn.relu(x))
def fails(*_):
    raise RuntimeError("on purpose")
class Fails(Toolchain):
    name = "fails"
    def supports_call(self, call): return None
    def relay_to_runtime(self, *_): raise RuntimeError("on purpose")
"""

    def check(self, end, expected):
        code = self.BEGIN + end.format(database=in_folder("end.db"))
        ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
        self.assertIn(expected, ended.stderr)
        self.assertNotIn("nanobind", ended.stderr)

    def test_a_compilation_that_raises_leaves_nothing(self):
        compile_ = "collage.compile(net, threads=1, toolchains=['native'], database={database!r}, "
        for how, expected in [
            ("require=['nosuch'])", "there is no toolchain 'nosuch'"),
            ("progress=fails)", "on purpose"),
            ("estimator=fails)", "on purpose"),
            ("search=fails)", "on purpose"),
        ]:
            with self.subTest(how):
                self.check(compile_ + how, expected)

    def test_nor_does_a_toolchain(self):
        self.check("register_toolchain(Fails())\nraise RuntimeError('on purpose')", "on purpose")
        compile_ = "collage.compile(net, threads=1, toolchains=['fails'], require=['fails'], database={database!r})"
        self.check("register_toolchain(Fails())\n" + compile_, "UnavailableError")


if __name__ == "__main__":
    unittest.main()
