"""``torch.compile(model, backend="collage")``. Needs torch, which is not among the packages that ./setup installs: run it with
the Python of an environment that has torch and numpy, PYTHONPATH naming the built package."""

import importlib.util
import sys
import unittest
import warnings

import numpy as np

import collage
from collage import torch_backend
from own_folder import setUpModule, tearDownModule  # noqa: F401

HAS_TORCH = importlib.util.find_spec("torch") is not None
OPTIONS = {"threads": 1, "partition_for": "native"}


def Attention(torch, width, heads):  # noqa: N802 (makes a layer)
    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.project = torch.nn.Linear(width, 3 * width)
            self.back = torch.nn.Linear(width, width)
            self.norm = torch.nn.LayerNorm(width)

        def forward(self, x):
            b, s, _ = x.shape
            q, k, v = (part.view(b, s, heads, -1).transpose(1, 2) for part in self.project(x).chunk(3, -1))
            mixed = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.norm(x + self.back(mixed.transpose(1, 2).reshape(b, s, width)))

    return Layer()


@unittest.skipUnless(HAS_TORCH, "torch is not installed")
class Models(unittest.TestCase):
    def setUp(self):
        import torch

        self.torch = torch
        torch_backend.register()
        torch.manual_seed(0)
        torch._dynamo.reset()

    def compare(self, model, *inputs, tolerance=1e-5):
        """Runs both; returns the compiled model and what Collage warned of."""
        model = model.eval()
        with self.torch.no_grad(), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fast = self.torch.compile(model, backend="collage", options=OPTIONS)
            for _ in range(2):
                np.testing.assert_allclose(fast(*inputs), model(*inputs), rtol=tolerance, atol=tolerance)
        return fast, [str(one.message) for one in caught if "not in Collage" in str(one.message)]

    def test_networks(self):
        nn, randn = self.torch.nn, self.torch.randn
        networks = {
            "convolutions": (nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
                                           nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5), nn.Softmax(-1)),
                             randn(1, 3, 16, 16)),
            "groups": (nn.Sequential(nn.Conv2d(4, 8, 3, stride=2, groups=2), nn.GroupNorm(2, 8), nn.Hardswish(),
                                     nn.AvgPool2d(2), nn.ConvTranspose2d(8, 3, 2, stride=2)), randn(2, 4, 12, 12)),
            "dense": (nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 4), nn.Tanh()),
                      randn(4, 16)),
            "embedding": (nn.Sequential(nn.Embedding(10, 8), nn.SiLU()), self.torch.tensor([[1, 2, 3]])),
            "attention": (Attention(self.torch, 32, 4), randn(1, 6, 32)),
        }  # fmt: skip
        for name, (model, x) in networks.items():
            with self.subTest(name):
                self.torch._dynamo.reset()
                self.assertEqual(self.compare(model, x)[1], [])

    def test_a_parameter_that_changes_is_noticed(self):
        model = self.torch.nn.Linear(4, 3)
        x = self.torch.randn(2, 4)
        fast, warned = self.compare(model, x)
        self.assertEqual(warned, [])
        with self.torch.no_grad():
            model.weight.mul_(2)
            np.testing.assert_allclose(fast(x), model(x), rtol=1e-5, atol=1e-5)

    def test_what_has_no_equivalent_runs_in_torch(self):
        class Sorted(self.torch.nn.Module):
            def forward(self, x):
                return x.sort(dim=-1).values + 1

        warned = self.compare(Sorted(), self.torch.randn(3, 5))[1]
        self.assertEqual(len(warned), 1)
        self.assertIn("there is no row for sort", warned[0])

    def test_sizes_that_change_stay_open(self):
        torch = self.torch

        class Rows(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 8))

            def forward(self, x):
                rows, columns, _ = x.shape
                return self.inner(x).reshape(rows * columns, -1), 2 * columns, None

        model = Rows().eval()
        fast = torch.compile(model, backend="collage", dynamic=True, options={"threads": 1, "toolchains": "native"})
        with torch.no_grad(), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for sizes in ((3, 5), (7, 9), (2, 64)):
                x = torch.randn(*sizes, 16)
                (ours, our_number, ours_none), (wanted, number, _) = fast(x), model(x)
                np.testing.assert_allclose(ours, wanted, rtol=1e-5, atol=1e-5)
                self.assertEqual((our_number, ours_none), (number, None))
            model.inner[0].weight.mul_(2)
            np.testing.assert_allclose(fast(x)[0], model(x)[0], rtol=1e-5, atol=1e-5)
        self.assertEqual([one for one in caught if "not in Collage" in str(one.message)], [])

    def test_a_size_that_is_found_to_change_is_compiled_once(self):
        torch = self.torch
        model = Attention(torch, 32, 4).eval()
        fast = torch.compile(model, backend="collage", options={"threads": 1, "toolchains": "native"})
        counter = torch._dynamo.testing.CompileCounter()
        counted = torch.compile(model, backend=counter)
        with torch.no_grad(), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for length in (6, 9, 14, 21):
                x = torch.randn(1, length, 32)
                np.testing.assert_allclose(fast(x), model(x), rtol=1e-5, atol=1e-5)
                counted(x)
        self.assertEqual(counter.frame_count, 2)  # the first size, and all others
        self.assertEqual([one for one in caught if "not in Collage" in str(one.message)], [])

    def test_tensors_are_read_where_they_lie(self):
        executable = collage.compile(collage.parse("def @main(%x: Tensor[(64), float32]) { negative(%x) }"), threads=1,
                                     partition_for="native")  # fmt: skip
        run = executable.instance()
        x = self.torch.zeros(64)
        run.set_input(0, x)
        x += 3
        run.run()
        self.assertEqual(run.output(0).tolist(), [-3.0] * 64)


class WithoutTorch(unittest.TestCase):
    @unittest.skipIf(HAS_TORCH, "torch is installed")
    def test_registering_says_what_is_missing(self):
        with self.assertRaisesRegex(ImportError, "torch"):
            torch_backend.register()

    def test_rows_are_listed(self):
        from collage import _aten

        self.assertIn("convolution", _aten.operators())


if __name__ == "__main__":
    if not HAS_TORCH:
        program = unittest.main(exit=False, argv=[sys.argv[0], "WithoutTorch"])
        print("skipped: torch is not installed; with it, torch.compile(backend='collage') is tested")
        sys.exit(77 if program.result.wasSuccessful() else 1)
    unittest.main()
