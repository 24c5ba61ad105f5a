"""The RFC's fragment on an NVIDIA GPU, which a driver stands in for where there is none."""

import unittest

import numpy as np

import collage
import collage as tvm
from compiling_test import available, mnist
from own_folder import setUpModule, tearDownModule  # noqa: F401


def check_runs(exe, mod):
    """Three runs of an executable against a module: the second one records what the GPU does, the third repeats it."""
    x = np.random.default_rng(0).standard_normal((1, 1, 28, 28)).astype("float32")
    reference = tvm.relay.vm.VirtualMachine(tvm.relay.vm.compile(mod)).run(x)
    for _ in range(3):
        result = tvm.relay.vm.VirtualMachine(exe).run(x)
        np.testing.assert_allclose(result, reference, rtol=1e-3, atol=1e-4)


class RfcFragment(unittest.TestCase):
    def test_as_printed(self):
        on_gpu = {"cuda", "cutlass", "tensorrt", "cudnn", "cublas"}
        if not all(available(name) for name in on_gpu):
            self.skipTest("there is no GPU, and nothing that stands in for one")
        mod = mnist()
        with tvm.transform.PassContext(config={"relay.fallback_device_type": 2, "relay.collage.enable_collage": True}):
            host_target = tvm.target.Target("llvm")
            generic_target = tvm.target.Target("cuda", host_target)
            cutlass_target = tvm.target.Target("cuda -compiler=cutlass", host_target)
            tensorrt_target = tvm.target.Target("cuda -compiler=tensorrt", host_target)
            cudnn_target = tvm.target.Target("cuda -libs=cudnn", host_target)
            cublas_target = tvm.target.Target("cuda -libs=cublas", host_target)
            targets = [generic_target, cutlass_target, tensorrt_target, cudnn_target, cublas_target]
            exe = tvm.relay.vm.compile(mod, target=targets)
        report = exe.plan.report
        self.assertLessEqual(on_gpu, {one["name"] for one in report["toolchains"] if one["takes_part"]})
        self.assertLessEqual({name for one in report["play_off"] for name in one["partitions"]}, on_gpu)
        check_runs(exe, mod)

    def test_toolchains_that_there_are_not_are_refused_by_name(self):
        with tvm.transform.PassContext(config={"relay.collage.enable_collage": True}):
            targets = [tvm.target.Target("cuda", "llvm"), tvm.target.Target("cuda -compiler=absent", "llvm")]
            with self.assertRaisesRegex(collage.InputError, "absent"):
                tvm.relay.vm.compile(mnist(), target=targets)


if __name__ == "__main__":
    unittest.main()
