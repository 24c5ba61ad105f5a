"""Executables: arrays without copies, errors, files, threads."""

import threading
import time
import unittest

import numpy as np

import collage
import own_folder
from collage import relay
from own_folder import in_folder, tearDownModule  # noqa: F401


def compiled(function, **options):
    """Compiles natively, nothing searched: quick."""
    return collage.compile(function, partition_for="native", threads=1, **options)


def setUpModule():
    global add_exe, big_exe
    own_folder.setUpModule()
    x, y = relay.var("x", shape=(4, 16)), relay.var("y", shape=(16,))
    add_exe = compiled(relay.Function([x, y], relay.Tuple([relay.add(x, y), relay.nn.relu(x)])))
    w = relay.const(np.random.default_rng(1).standard_normal((512, 512)).astype("float32"))
    z = relay.var("z", shape=(512, 512))
    big_exe = compiled(relay.Function([z], relay.nn.dense(relay.nn.dense(relay.nn.dense(z, w), w), w)))


class Calls(unittest.TestCase):
    def setUp(self):
        random = np.random.default_rng(0)
        self.x = random.standard_normal((4, 16)).astype("float32")
        self.y = random.standard_normal(16).astype("float32")

    def test_by_position_name_and_mapping(self):
        for results in (
            add_exe(self.x, self.y),
            add_exe(self.x, y=self.y),
            add_exe(y=self.y, x=self.x),
            tuple(add_exe.run({"x": self.x, "y": self.y}).values()),
            tuple(add_exe.run([self.x, self.y]).values()),
        ):
            np.testing.assert_allclose(results[0], self.x + self.y)
            np.testing.assert_allclose(results[1], np.maximum(self.x, 0))

    def test_results_are_their_own(self):
        first = add_exe(self.x, self.y)[0]
        kept = first.copy()
        add_exe(self.x + 1, self.y)
        np.testing.assert_array_equal(first, kept)
        first[0, 0] = 3  # writable

    def test_strided_lists_and_dlpack(self):
        wide = np.repeat(self.x, 2, axis=1)
        np.testing.assert_allclose(add_exe(wide[:, ::2], self.y)[0], self.x + self.y)
        self.x.flags.writeable = False
        np.testing.assert_allclose(add_exe(self.x, self.y)[0], self.x + self.y)

        class OnlyDLPack:
            def __init__(self, array):
                self.array = array

            def __dlpack__(self, **options):
                return self.array.__dlpack__(**options)

            def __dlpack_device__(self):
                return self.array.__dlpack_device__()

        self.x = self.x.copy()
        np.testing.assert_allclose(add_exe(OnlyDLPack(self.x), self.y)[0], self.x + self.y)
        np.testing.assert_allclose(np.from_dlpack(add_exe(self.x, self.y)[0]), self.x + self.y)

    def test_torch(self):
        try:
            import torch
        except ImportError:
            self.skipTest("torch is not installed")
        result = add_exe(torch.from_numpy(self.x), torch.from_numpy(self.y))[0]
        np.testing.assert_allclose(torch.from_numpy(result).numpy(), self.x + self.y)

    def test_wrong_inputs(self):
        for args, named, message in [
            ((self.x,), {}, "no value for input 'y'"),
            ((), {}, "no value for inputs 'x', 'y'"),
            ((self.x, self.y, self.y), {}, "has 2 inputs, got 3"),
            ((self.x, self.y), {"z": self.y}, "no input 'z'"),
            ((self.x, self.y), {"x": self.x}, "given twice"),
            ((self.y, self.x), {}, r"input 'x' wants float32 \(4, 16\), got float32 \(16\)"),
            ((self.x.astype("float64"), self.y), {}, "float64"),
            ((["a"], self.y), {}, "no array of numbers"),
        ]:
            with self.subTest(message), self.assertRaisesRegex(collage.InputError, message):
                add_exe(*args, **named)

    def test_what_it_says_of_itself(self):
        self.assertEqual(
            [(port.name, port.shape, port.dtype) for port in add_exe.inputs],
            [("x", (4, 16), "float32"), ("y", (16,), "float32")],
        )
        self.assertEqual([port.shape for port in add_exe.outputs], [(4, 16), (4, 16)])
        self.assertEqual(add_exe.num_threads, 1)
        self.assertEqual({part.toolchain for part in add_exe.partitions}, {"native"})
        self.assertIn("x: float32[4, 16]", repr(add_exe))
        self.assertEqual(add_exe.metadata["model"], "module")
        self.assertGreaterEqual(len(add_exe.benchmark(0.01)), 5)


class Instances(unittest.TestCase):
    def test_no_copies(self):
        instance = add_exe.instance()
        x, y, out = collage.empty((4, 16)), collage.empty((16,)), collage.empty((4, 16))
        x[...], y[...] = 1, 2
        instance.set_input(0, x)
        instance.set_input(1, y)
        instance.set_output(0, out)
        instance.run()
        self.assertTrue((out == 3).all())
        x[...] = 5  # what is bound is this very memory
        instance.run()
        self.assertTrue((out == 7).all())
        self.assertEqual(instance.output(0).ctypes.data, out.ctypes.data)
        self.assertEqual([step.operators for step in instance.run_timed()], [one.operators for one in add_exe.partitions])

    def test_unaligned_memory(self):
        raw = np.zeros(4 * 16 * 4 + 4, "uint8")
        offset = 4 if raw.ctypes.data % 64 == 0 else 0
        unaligned = raw[offset : offset + 256].view("float32").reshape(4, 16)
        instance = add_exe.instance()
        instance.set_input(0, unaligned)  # copied
        with self.assertRaisesRegex(collage.InputError, "64-byte aligned"):
            instance.set_output(0, unaligned)

    def test_errors(self):
        instance = add_exe.instance()
        with self.assertRaisesRegex(collage.InputError, "has not been set"):
            instance.run()
        with self.assertRaisesRegex(collage.InputError, "no input 7"):
            instance.set_input(7, collage.empty((1,)))
        with self.assertRaisesRegex(collage.InputError, "there is no output 2"):
            instance.output(2)
        fixed = collage.empty((4, 16))
        fixed.flags.writeable = False
        with self.assertRaisesRegex(collage.InputError, "read only"):
            instance.set_output(0, fixed)

    def test_outputs_outlive_their_instance(self):
        instance = add_exe.instance()
        instance.set_input(0, np.ones((4, 16), "float32"))
        instance.set_input(1, np.ones(16, "float32"))
        instance.run()
        output = instance.output(0)
        del instance
        self.assertTrue((output == 2).all())


class Threads(unittest.TestCase):
    def test_copies_of_one_executable(self):
        failures = []

        def work(seed):
            random = np.random.default_rng(seed)
            for _ in range(20):
                x = random.standard_normal((4, 16)).astype("float32")
                y = random.standard_normal(16).astype("float32")
                if not np.allclose(add_exe(x, y)[0], x + y):
                    failures.append(seed)

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])

    def test_one_instance_from_several_threads(self):
        instance = add_exe.instance()
        instance.set_input(0, np.ones((4, 16), "float32"))
        instance.set_input(1, np.ones(16, "float32"))
        threads = [threading.Thread(target=instance.run) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertTrue((instance.output(0) == 2).all())

    def test_the_interpreter_goes_on(self):
        z = np.ones((512, 512), "float32")
        done = threading.Event()

        def work():
            for _ in range(10):
                big_exe(z)
            done.set()

        ticks = 0
        thread = threading.Thread(target=work)
        thread.start()
        while not done.is_set():
            ticks += 1
            time.sleep(0)
        thread.join()
        self.assertGreater(ticks, 20)


class Files(unittest.TestCase):
    def test_save_and_load(self):
        path = in_folder("saved.clg")
        add_exe.save(path)
        collage.Executable.verify(path)
        loaded = collage.load(path)
        self.assertIsNone(loaded.report)
        x, y = np.ones((4, 16), "float32"), np.ones(16, "float32")
        np.testing.assert_array_equal(loaded(x, y)[0], add_exe(x, y)[0])

    def test_damaged_and_missing(self):
        path = in_folder("damaged.clg")
        add_exe.save(path)
        with open(path, "r+b") as file:
            file.truncate(100)
        with self.assertRaises(collage.CorruptError):
            collage.load(path)
        with self.assertRaises(collage.InputError):
            collage.load(in_folder("missing.clg"))


class Programs(unittest.TestCase):
    """Models with control flow or dynamic shapes have the same interface."""

    def test_sizes_that_are_named(self):
        module = collage.parse("def @main(%x: Tensor[(?, 8), float32]) { nn.softmax(nn.relu(%x)) }")
        exe = compiled(module, tune_at={"x[0]": [3, 40]})
        self.assertEqual(exe.report["searched_sizes"], ["x[0]=3", "x[0]=40"])
        exe.save(in_folder("program.clg"))
        collage.Executable.verify(in_folder("program.clg"))
        for one in (exe, collage.load(in_folder("program.clg"))):
            self.assertEqual(one.inputs, [collage.Port("x", (-1, 8), "float32", ("", ""))])
            self.assertEqual(one.outputs, [collage.Port("output_0", (-1, 8), "float32", ("", ""))])
            self.assertEqual({part.toolchain for part in one.partitions}, {"native"})
            self.assertEqual(one.num_threads, 1)
            for rows in (1, 3, 40, 41):
                x = np.random.default_rng(rows).standard_normal((rows, 8)).astype("float32")
                e = np.exp(np.maximum(x, 0))
                np.testing.assert_allclose(one(x), e / e.sum(axis=1, keepdims=True), rtol=1e-5)
                np.testing.assert_allclose(one.run({"x": x})["output_0"], one(x=x))
        with self.assertRaisesRegex(collage.InputError, "of dynamic shape"):
            exe.benchmark(0.01)
        self.assertGreaterEqual(len(exe.benchmark(0.01, [np.ones((3, 8), "float32")])), 5)
        with self.assertRaises(collage.UnsupportedError):
            exe.instance()
        with self.assertRaisesRegex(collage.InputError, "parameter 'x'"):
            exe(np.ones((3, 9), "float32"))

    def test_data_is_for_the_virtual_machine(self):
        module = collage.parse("""
            type List[A] { Cons(A, List[A]), Nil }
            def @main(%x: int64) { Cons(%x, Nil) }""")
        with self.assertRaisesRegex(collage.UnsupportedError, "the result of the program is no tensor"):
            compiled(module)


if __name__ == "__main__":
    unittest.main()
