"""Executables: arrays without copies, errors, files, threads."""

import copy
import io
import pickle
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
            tuple(add_exe.run(inputs={"x": self.x, "y": self.y}).values()),
            add_exe({"x": self.x, "y": self.y}),
            add_exe({"x": self.x}, y=self.y),
        ):
            np.testing.assert_allclose(results[0], self.x + self.y)
            np.testing.assert_allclose(results[1], np.maximum(self.x, 0))

    def test_as_onnx_runtime_is_called(self):
        feed = {"x": self.x, "y": self.y}
        sum_, positive = self.x + self.y, np.maximum(self.x, 0)
        for names, wanted in [
            (None, [sum_, positive]),
            (["output_1"], [positive]),
            ("output_1", [positive]),
            (["output_1", "output_0"], [positive, sum_]),
        ]:
            for results in (add_exe.run(names, feed), add_exe.run(output_names=names, input_feed=feed)):
                self.assertIsInstance(results, list)
                np.testing.assert_allclose(results, wanted)
        self.assertEqual(
            [(one.name, one.shape, one.type) for one in add_exe.get_inputs()],
            [("x", [4, 16], "tensor(float)"), ("y", [16], "tensor(float)")],
        )
        self.assertEqual([one.name for one in add_exe.get_outputs()], ["output_0", "output_1"])
        with self.assertRaisesRegex(collage.InputError, "there is no output 'z'\nhint: there are: output_0, output_1"):
            add_exe.run(["z"], feed)
        with self.assertRaisesRegex(
            collage.InputError, "input_feed: error: expected a dict, got an object of type 'list'"
        ):
            add_exe.run(None, [self.x, self.y])
        with self.assertRaisesRegex(collage.UnsupportedError, "run options"):
            add_exe.run(None, feed, object())
        for args, named in [
            ((), {}),
            ((None,), {"inputs": feed}),
            ((None, feed, None, None), {}),
            ((1, feed), {"inputs": 1}),
        ]:
            with self.assertRaises(TypeError):
                add_exe.run(*args, **named)
        with self.assertRaisesRegex(collage.InputError, "input 'x' is given twice"):
            add_exe(feed, x=self.x)

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

    def test_benchmark_sums_up(self):
        times = add_exe.benchmark(0.01, {"x": self.x, "y": self.y})
        self.assertEqual((times.count, times.samples), (len(times), list(times)))
        self.assertLessEqual(times.min, times.p50)
        self.assertLessEqual(times.p50, times.p90)
        self.assertLessEqual(times.p90, times.p99)
        self.assertLessEqual(times.p99, times.max)
        for ours, of_numpy in [
            (times.mean, np.mean),
            (times.p50, np.median),
            (times.max, np.max),
            (times.min, np.amin),
        ]:
            self.assertAlmostEqual(ours, of_numpy(times))
        self.assertEqual(np.concatenate([times, times]).shape, (2 * times.count,))
        self.assertEqual(np.asarray(times).tolist(), times)
        self.assertEqual(pickle.loads(pickle.dumps(times)).p90, times.p90)
        with self.assertRaisesRegex(collage.InputError, "no value for input 'y'"):
            add_exe.benchmark(0.01, {"x": self.x})
        self.assertTrue(np.isnan(collage.BenchmarkSummary().p50))


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

    def test_arrays_are_bound_by_name(self):
        instance = add_exe.instance()
        x, out = np.full((4, 16), 2, "float32"), collage.empty((4, 16))
        instance.set_input("x", x)
        instance.set_input("y", np.ones(16, "float32"))
        instance.set_output("output_1", out)
        instance.run()
        self.assertTrue((instance.get_output("output_0") == 3).all())
        self.assertTrue((out == 2).all())
        self.assertEqual(instance.get_output("output_1").ctypes.data, instance.output(1).ctypes.data)

    def test_steps_are_named(self):
        instance = add_exe.instance()
        instance.set_input("x", np.ones((4, 16), "float32"))
        instance.set_input("y", np.ones(16, "float32"))
        steps = instance.run_timed()
        kernels = [step for step in steps if step.kind == "kernel"]
        self.assertEqual(
            [(step.toolchain, step.operators, step.nodes) for step in kernels],
            [(part.toolchain, part.operators, part.nodes) for part in add_exe.partitions],
        )
        self.assertEqual([step.partition for step in kernels], list(range(len(kernels))))
        self.assertEqual([float(step) for step in steps], [step.seconds for step in steps])
        self.assertRegex(repr(steps[0]), r"<TimedStep \d+\.\d us, native: ")

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
        for wrong, problem in [(7, "no input 7"), (-1, "no input -1"), ("z", "no input 'z'\nhint: there are: x, y")]:
            with self.assertRaisesRegex(collage.InputError, problem):
                instance.set_input(wrong, collage.empty((1,)))
        with self.assertRaisesRegex(collage.InputError, "there is no output 2\nhint: there are: output_0, output_1"):
            instance.get_output(2)
        with self.assertRaisesRegex(collage.InputError, "there is no output 'x'"):
            instance.set_output("x", collage.empty((4, 16)))
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
        x, y = np.ones((4, 16), "float32"), np.ones(16, "float32")
        np.testing.assert_array_equal(loaded(x, y)[0], add_exe(x, y)[0])

    def test_damaged_and_missing(self):
        path = in_folder("damaged.clg")
        add_exe.save(path)
        with open(path, "r+b") as file:
            file.truncate(100)
        with self.assertRaises(collage.CorruptError):
            collage.load(path)
        missing = in_folder("missing.clg")
        calls = [collage.load, collage.Executable.verify, collage.explanation, collage.compile, collage.support]
        for call in calls:
            for error in (collage.InputError, FileNotFoundError):
                with self.subTest(call=call), self.assertRaises(error) as caught:
                    call(missing)
                self.assertEqual(str(caught.exception), f"{missing}: error: cannot open: No such file or directory")
                self.assertEqual(caught.exception.filename, missing)

    def test_bytes_and_open_files(self):
        x, y = np.ones((4, 16), "float32"), np.ones(16, "float32")
        data = add_exe.to_bytes()
        path = in_folder("open.clg")
        add_exe.save(path)
        with open(path, "rb") as file:
            self.assertEqual(file.read(), data)
            file.seek(0)
            from_file = collage.load(file)
        for loaded in (from_file, collage.load(data), collage.load(memoryview(data)), collage.load(io.BytesIO(data))):
            np.testing.assert_array_equal(loaded(x, y)[0], add_exe(x, y)[0])
        with self.assertRaisesRegex(collage.CorruptError, "memory: error: the executable is truncated"):
            collage.load(data[:300])
        with (
            open(path) as file,
            self.assertRaisesRegex(collage.InputError, "the file is open as text\nhint: open it with"),
        ):
            collage.load(file)
        with self.assertRaisesRegex(
            collage.InputError, "file: error: expected a path, bytes or an open file, got 'int'"
        ):
            collage.load(3)

    def test_pickles_and_copies(self):
        x, y = np.ones((4, 16), "float32"), np.ones(16, "float32")
        for other in (pickle.loads(pickle.dumps(add_exe)), copy.deepcopy(add_exe), copy.copy(add_exe)):
            np.testing.assert_array_equal(other(x, y)[0], add_exe(x, y)[0])
            self.assertEqual((other.inputs, other.report), (add_exe.inputs, add_exe.report))
        other = copy.deepcopy(add_exe)
        other.report["winner"] = "mine"
        self.assertEqual(add_exe.report["winner"], "native")

    def test_with_closes(self):
        x, y = np.ones((4, 16), "float32"), np.ones(16, "float32")
        with collage.load(add_exe.to_bytes()) as exe:
            exe(x, y)
            instance, copied = exe.instance(), copy.deepcopy(exe)
        for call in (
            exe.instance,
            exe.to_bytes,
            exe.explain,
            lambda: exe(x, y),
            lambda: exe.num_threads,
            exe._repr_html_,
        ):
            with self.assertRaisesRegex(collage.InputError, "the executable is closed"):
                call()
        instance.set_input("x", x)
        instance.set_input("y", y)
        instance.run()
        self.assertTrue((copied(x, y)[0] == 2).all())
        self.assertIn("x: float32[4, 16]", repr(exe))

    def test_report_of_a_file(self):
        loaded = collage.load(add_exe.to_bytes())
        wanted = dict(add_exe.report)
        found = dict(loaded.report)
        for one in (wanted, found):
            del one["output_bytes"], one["seconds"]  # those of files end before the file is written
        self.assertEqual(found, wanted)
        x = relay.var("x", shape=(2,))
        silent = compiled(relay.Function([x], relay.exp(x)), explanation="none")
        self.assertEqual(silent.report["winner"], "native")
        self.assertIsNone(collage.load(silent.to_bytes()).report)


class Programs(unittest.TestCase):
    """Models with control flow or dynamic shapes have the same interface."""

    def test_sizes_that_are_named(self):
        module = collage.parse("def @main(%x: Tensor[(?, 8), float32]) { nn.softmax(nn.relu(%x)) }")
        exe = compiled(module, tune_at={"x[0]": [3, 40]})
        self.assertEqual(exe.report["searched_sizes"], ["x[0]=3", "x[0]=40"])
        exe.save(in_folder("program.clg"))
        collage.Executable.verify(in_folder("program.clg"))
        for one in (exe, collage.load(in_folder("program.clg")), pickle.loads(pickle.dumps(exe)), copy.deepcopy(exe)):
            self.assertEqual(one.inputs, [collage.Port("x", (-1, 8), "float32", ("", ""))])
            self.assertEqual(one.outputs, [collage.Port("output_0", (-1, 8), "float32", ("", ""))])
            self.assertEqual({part.toolchain for part in one.partitions}, {"native"})
            self.assertEqual(one.num_threads, 1)
            self.assertEqual(one.report["searched_sizes"], ["x[0]=3", "x[0]=40"])
            self.assertEqual([port.shape for port in one.get_inputs()], [[None, 8]])
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
