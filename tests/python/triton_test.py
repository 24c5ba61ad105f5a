"""Triton beside native kernels on an NVIDIA GPU. A process that has run a GPU's driver cannot compile for it."""

import unittest

import collage as tvm
from compiling_test import available, mnist
from cuda_test import check_runs
from own_folder import setUpModule, tearDownModule  # noqa: F401


class Triton(unittest.TestCase):
    def test_takes_part_beside_native_kernels(self):
        on_gpu = {"cuda", "triton"}
        if not all(available(name) for name in on_gpu):
            self.skipTest("there is no GPU, and nothing that stands in for one, or no Triton")
        mod = mnist()
        with tvm.transform.PassContext(config={"relay.fallback_device_type": 2, "relay.collage.enable_collage": True}):
            host_target = tvm.target.Target("llvm")
            targets = [tvm.target.Target("cuda", host_target), tvm.target.Target("cuda -compiler=triton", host_target)]
            exe = tvm.relay.vm.compile(mod, target=targets)
        report = exe.plan.report
        self.assertLessEqual(on_gpu, {one["name"] for one in report["toolchains"] if one["takes_part"]})
        self.assertIn("triton", {name for one in report["play_off"] for name in one["partitions"]})
        check_runs(exe, mod)


if __name__ == "__main__":
    unittest.main()
