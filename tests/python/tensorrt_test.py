"""The RFC's target for TensorRT on an NVIDIA GPU, both of which stand-ins replace where there are none."""

import unittest

import numpy as np

import collage as tvm
from compiling_test import available, mnist
from own_folder import setUpModule, tearDownModule  # noqa: F401


class RfcTarget(unittest.TestCase):
    def test_takes_part_and_computes_alone(self):
        if not available("cuda") or not available("tensorrt"):
            self.skipTest("there is no GPU or no TensorRT, and nothing that stands in for them")
        mod = mnist()
        with tvm.transform.PassContext(config={"relay.fallback_device_type": 2, "relay.collage.enable_collage": True}):
            host_target = tvm.target.Target("llvm")
            generic_target = tvm.target.Target("cuda", host_target)
            tensorrt_target = tvm.target.Target("cuda -compiler=tensorrt", host_target)
            exe = tvm.relay.vm.compile(mod, target=[generic_target, tensorrt_target])
        self.assertIn("tensorrt", {name for one in exe.plan.report["play_off"] for name in one["partitions"]})
        partitioned = tvm.relay.collage.partition_for_tensorrt(mod)
        # All are compiled before one runs: a process that has used the driver compiles nothing for it.
        alone = tvm.relay.vm.compile(partitioned, target=["cuda -compiler=tensorrt", "llvm"])
        on_processor = tvm.relay.vm.compile(mod)
        x = np.random.default_rng(1).standard_normal((1, 1, 28, 28)).astype("float32")
        reference = tvm.relay.vm.VirtualMachine(on_processor).run(x)
        for one in (exe, alone):
            machine = tvm.relay.vm.VirtualMachine(one)
            for _ in range(3):  # the second run records what the GPU does, the third repeats it
                np.testing.assert_allclose(machine.run(x), reference, rtol=1e-3, atol=1e-4)


if __name__ == "__main__":
    unittest.main()
