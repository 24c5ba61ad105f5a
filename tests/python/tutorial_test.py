"""docs/tutorial.md: its service and its client run as they stand, but for the port; torch's part is only read."""

import ast
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import numpy as np

import collage
from collage import relay

PAGE = (Path(os.environ["COLLAGE_SOURCE"]) / "docs/tutorial.md").read_text()
EXPORT, SERVE, ASK = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class TutorialTest(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def compile(self) -> np.ndarray:
        """Writes model.clg and expected.npz as the tutorial's first steps do, of a smaller model; returns its scores."""
        image = relay.var("image", shape=(1, 3, 64, 64))
        weight = relay.const(np.random.default_rng(1).uniform(-1, 1, (10, 3)).astype("float32"))
        pooled = relay.nn.batch_flatten(relay.nn.global_avg_pool2d(image))
        net = relay.Function([image], relay.nn.softmax(relay.nn.dense(pooled, weight)))
        options = {"database": str(self.folder / "tuning.db"), "threads": 1, "partition_for": "native"}
        executable = collage.compile(net, output=self.folder / "model.clg", **options)
        value = np.random.default_rng(2).uniform(0, 1, (1, 3, 64, 64)).astype("float32")
        np.savez(self.folder / "expected.npz", image=value)
        return executable(value)

    def test_service_answers_its_client(self) -> None:
        scores = self.compile()
        port = str(free_port())
        for name, block in (("serve.py", SERVE), ("ask.py", ASK)):
            (self.folder / name).write_text(block.replace("8000", port))
        service = subprocess.Popen([sys.executable, "serve.py"], cwd=self.folder, stderr=subprocess.PIPE)
        try:
            for _ in range(100):
                asked = subprocess.run([sys.executable, "ask.py"], cwd=self.folder, capture_output=True, text=True)
                if asked.returncode == 0 or service.poll() is not None:
                    break
                time.sleep(0.1)  # until it listens
            self.assertEqual(asked.stdout, f"{scores.argmax()}\n", asked.stderr)
        finally:
            service.terminate()
            service.communicate()

    def test_export_names_what_later_steps_read(self) -> None:
        ast.parse(EXPORT)
        for name in ("model.onnx", "expected.npz", '"image"', '"scores"'):
            self.assertIn(name, EXPORT)
        commands = re.findall(r"^    collage (\w+) .*$", PAGE, re.MULTILINE)
        self.assertEqual(commands, ["import", "compile", "run", "info", "explain", "report", "info", "benchmark"])


if __name__ == "__main__":
    unittest.main()
