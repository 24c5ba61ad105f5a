"""Programs with control flow, closures and data."""

import os
import tempfile
import threading
import unittest

import numpy as np

import collage
from collage import relay
from collage.relay import vm

PROGRAM = """
type List[A] { Cons(A, List[A]), Nil }
def @sum(%list: List[float32], %so_far: float32) -> float32 {
  match (%list) { Cons(%x, %rest) => { @sum(%rest, add(%so_far, %x)) }, Nil => { %so_far } }
}
def @count(%n: int64) -> List[float32] {
  if (equal(%n, 0i64)) { Nil } else { Cons(1f, @count(subtract(%n, 1i64))) }
}
def @main(%n: int64) -> float32 { @sum(@count(%n), 0f) }
def @adder(%x: float32) { fn (%y: float32) { add(%x, %y) } }
def @apply(%f: fn (float32) -> float32, %x: float32) { %f(%x) }
def @both(%pair: (float32, int64)) { (%pair.1, %pair.0) }
"""


class Running(unittest.TestCase):
    def setUp(self):
        self.module = collage.parse(PROGRAM)
        self.exe = vm.compile(self.module)
        self.machine = vm.VirtualMachine(self.exe)

    def test_recursion_and_data(self):
        self.assertEqual(float(self.machine.run(5)), 5.0)
        self.assertEqual(float(self.machine.run(np.int64(2000))), 2000.0)
        two = self.machine.invoke("count", 2)
        self.assertEqual((two.name, len(two.fields), two.fields[1].fields[1].name), ("Cons", 2, "Nil"))
        nil = vm.ADT(self.module.constructor("Nil"))
        cons = self.module.constructor("Cons")
        made = vm.ADT(cons, (np.float32(2.5), vm.ADT(cons, (np.float32(4), nil))))
        self.assertEqual(float(self.machine.invoke("sum", made, np.float32(0.5))), 7.0)

    def test_closures_go_in_and_out(self):
        add_two = self.machine.invoke("adder", 2.0)
        self.assertIsInstance(add_two, vm.Value)
        self.assertEqual(float(self.machine.invoke("apply", add_two, 3.0)), 5.0)

    def test_tuples(self):
        first, second = self.machine.invoke("both", (np.float32(1.5), np.int64(7)))
        self.assertEqual((int(first), float(second)), (7, 1.5))

    def test_errors(self):
        with self.assertRaisesRegex(collage.InputError, "nothing"):
            self.machine.invoke("nothing")
        with self.assertRaisesRegex(collage.InputError, "float32"):
            self.machine.run(1.5)
        deep = vm.VirtualMachine(
            vm.compile(
                collage.parse(
                    "def @main(%n: int64) -> int64 { if (equal(%n, 0i64)) { 0i64 } else { add(1i64, @main(subtract(%n, 1i64))) } }"
                )
            )
        )
        with self.assertRaises(collage.ResourceError):
            deep.run(200000)

    def test_save_and_load(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "program")
            self.exe.save(path)
            loaded = vm.Executable.load(path)
            self.assertEqual(loaded.bytecode, self.exe.bytecode)
            self.assertEqual(float(vm.VirtualMachine(loaded).run(3)), 3.0)
            with open(path, "r+b") as file:
                file.truncate(10)
            with self.assertRaises(collage.CorruptError):
                vm.Executable.load(path)
            with self.assertRaisesRegex(collage.InputError, "cannot be read"):
                vm.Executable.load(os.path.join(folder, "missing"))

    def test_machines_in_threads(self):
        results = {}

        def work(n):
            results[n] = float(vm.VirtualMachine(self.exe).run(n))

        threads = [threading.Thread(target=work, args=(n,)) for n in range(50, 56)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(results, {n: float(n) for n in range(50, 56)})


class Compiling(unittest.TestCase):
    def test_kernels_in_branches(self):
        x, c = relay.var("x", shape=(4, 4)), relay.var("c", "bool")
        function = relay.Function([x, c], relay.If(c, relay.nn.relu(relay.add(x, relay.const(1.0))), relay.exp(x)))
        exe = vm.compile(function)
        self.assertIn("kernel", exe.bytecode)
        array = np.random.default_rng(0).standard_normal((4, 4)).astype("float32")
        machine = vm.VirtualMachine(exe)
        np.testing.assert_allclose(machine.run(array, True), np.maximum(array + 1, 0), rtol=1e-6)
        np.testing.assert_allclose(machine.run(array, False), np.exp(array), rtol=1e-5)

    def test_shapes_known_at_run_time(self):
        exe = vm.compile(collage.parse("def @main(%x: Tensor[(?, 2), float32]) { add(%x, 1f) }"))
        for rows in (1, 3):
            self.assertEqual(vm.VirtualMachine(exe).run(np.zeros((rows, 2), "float32")).tolist(), [[1, 1]] * rows)

    def test_partitions_run_on_their_toolchains(self):
        random = np.random.default_rng(3)
        available = {row["name"] for row in collage.toolchains() if row["available"]} - {"native"}

        def constant(*shape):
            return relay.const(random.standard_normal(shape).astype("float32"))

        shapes = (1, 3, 8, 8), (4, 32)
        image, rows = (relay.var("x", shape=shape) for shape in shapes)
        convolution = relay.nn.conv2d(relay.nn.relu(relay.nn.conv2d(image, constant(4, 3, 3, 3))), constant(5, 4, 3, 3))
        products = relay.nn.dense(relay.nn.relu(relay.nn.dense(rows, constant(16, 32))), constant(8, 16))
        cases = [
            ("nn.conv2d", shapes[0], image, relay.tanh(convolution), available & {"dnnl", "openvino", "xnnpack"}),
            ("nn.dense", shapes[1], rows, relay.tanh(products), available),
        ]
        for operator, shape, x, body, toolchains in cases:
            module = collage.IRModule.from_expr(relay.Function([x], body))
            array = random.standard_normal(shape).astype("float32")
            expected = vm.VirtualMachine(vm.compile(module)).run(array)
            for name in sorted(toolchains):
                with self.subTest(operator, toolchain=name):
                    partitioned = relay.collage.partition_for(module, name)
                    self.assertIn(f'Compiler="{name}"', str(partitioned))
                    exe = vm.compile(partitioned, f"llvm -compiler={name}")
                    self.assertIn("kernel", exe.bytecode)
                    self.assertNotIn(f"op {operator}", exe.bytecode)
                    np.testing.assert_allclose(vm.VirtualMachine(exe).run(array), expected, rtol=1e-4, atol=1e-4)
        with self.assertRaisesRegex(collage.InputError, "dnn"):
            relay.collage.partition_for(module, "dnn")

    def test_toolchains_without_partitions_are_warned_of(self):
        with self.assertWarnsRegex(UserWarning, "dnnl will not"):
            vm.compile(collage.parse("def @main(%x: Tensor[(2), float32]) { exp(%x) }"), "llvm -compiler=dnnl")

    def test_collage_compiles_the_dataflow_between_control_flow(self):
        module = collage.parse("""
            def @main(%n: int64, %x: Tensor[(4, 32), float32]) -> Tensor[(4, 32), float32] {
              if (%n < 1i64) { tanh(%x) } else { @main(%n - 1i64, nn.softmax(multiply(%x, 2f))) }
            }""")
        array = np.linspace(-1, 1, 128, dtype="float32").reshape(4, 32)
        expected = vm.VirtualMachine(vm.compile(module)).run(2, array)
        with tempfile.TemporaryDirectory() as folder:
            database = f"{folder}/tuning.db"
            with collage.transform.PassContext(config={"relay.collage.enable_collage": True}):
                exe = vm.compile(module, "llvm", threads=1, database=database)
            called = collage.compile(module, target="llvm", threads=1, database=database)
            np.testing.assert_allclose(called(2, array), expected, rtol=1e-4, atol=1e-6)
            exe.save(f"{folder}/program.clg")
            again = vm.Executable.load(f"{folder}/program.clg")
        self.assertIsNone(exe.plan)
        self.assertIn("kernel collage_region0", exe.bytecode)
        for one in (exe, again):
            np.testing.assert_allclose(vm.VirtualMachine(one).run(2, array), expected, rtol=1e-4, atol=1e-6)

    def test_what_the_pass_partitions_runs(self):
        module = collage.parse(
            "def @main(%x: Tensor[(8, 24), float32], %w: Tensor[(24, 24), float32], %b: bool)"
            " -> Tensor[(8, 24), float32] { if (%b) { nn.relu(nn.dense(%x, %w)) } else { %x } }"
        )
        config = {
            "relay.collage.targets": "llvm; llvm -compiler=xnnpack",
            "relay.collage.num_threads": 1,
            "relay.collage.estimator": 'mock={"op_cost": {"native": 3, "xnnpack": 1}}',
        }
        with collage.transform.PassContext(config=config):
            partitioned = collage.transform.CollagePartition()(module)
        self.assertIn('Compiler="xnnpack"', str(partitioned))
        machine = vm.VirtualMachine(vm.compile(partitioned, "llvm", threads=1))
        x = np.linspace(-1, 1, 8 * 24, dtype="float32").reshape(8, 24)
        w = np.linspace(-1, 1, 24 * 24, dtype="float32").reshape(24, 24)
        wanted = np.maximum(x @ w.T, 0)
        np.testing.assert_allclose(machine.run(x, w, np.array(True)), wanted, rtol=1e-4, atol=1e-4)
        np.testing.assert_array_equal(machine.run(x, w, np.array(False)), x)

    def test_options_of_collage_are_for_collage(self):
        module = collage.parse(PROGRAM)
        with self.assertRaisesRegex(collage.UnsupportedError, "budget"):
            vm.compile(module, budget="1s")


if __name__ == "__main__":
    unittest.main()
