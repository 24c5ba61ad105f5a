"""The programs of examples/python run as they stand, on models that are there."""

import http.client
import io
import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

import numpy as np

import collage
from own_folder import in_folder, setUpModule, tearDownModule  # noqa: F401

EXAMPLES = Path(__file__).resolve().parents[3] / "examples/python"
MODELS = Path(os.environ.get("COLLAGE_MODELS", Path.home() / ".cache/collage/models"))


def start(name: str, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), *arguments]
    return subprocess.Popen(command, cwd=in_folder("."), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


class Examples(unittest.TestCase):
    def run_example(self, name: str, *arguments: str) -> str:
        process = start(name, *arguments)
        output, errors = process.communicate(timeout=200)
        self.assertEqual(process.returncode, 0, errors)
        return output

    def test_readme_lists_all(self):
        rows = {
            line.split("[")[1].split("]")[0]
            for line in (EXAMPLES / "README.md").read_text().splitlines()
            if "| [" in line
        }
        self.assertEqual(rows, {path.name for path in EXAMPLES.glob("*.py")})

    def test_classify_compiles_once(self):
        if not (MODELS / "small/mobilenet_v2.onnx").exists():
            self.skipTest("no models; run tools/models/prepare-tests")
        first = self.run_example("classify", "--budget", "2s")
        again = self.run_example("classify", "--budget", "2s")
        classes = [line for line in first.splitlines() if line.startswith("class ")]
        self.assertEqual(len(classes), 5)
        self.assertEqual(classes, [line for line in again.splitlines() if line.startswith("class ")])

    def test_speech_is_found_where_it_is(self):
        lines = self.run_example("speech", "--seconds", "2", "--budget", "2s").splitlines()
        probability = {float(line.split()[0]): float(line.split()[2]) for line in lines if " s  " in line}
        self.assertLess(probability[0.26], 0.1)
        self.assertGreater(probability[1.02], 0.3)
        self.assertLess(probability[1.79], 0.1)

    def test_ocr_finds_and_reads_five_lines(self):
        if not (MODELS / "ocr/detector.onnx").exists():
            self.skipTest("no models; run tools/models/prepare-tests")
        lines = self.run_example("ocr", "--budget", "3s").splitlines()
        self.assertEqual(len([line for line in lines if line.startswith("rows ")]), 5, lines)
        self.assertIn("LAGE", lines[0])  # of COLLAGE, in dots

    def test_decode_says_the_same_again(self):
        first = self.run_example("decode", "--budget", "4s", "--tokens", "6")
        self.assertEqual(len(first.splitlines()[0].split()), 7)
        self.assertEqual(
            first.splitlines()[0], self.run_example("decode", "--budget", "4s", "--tokens", "6").splitlines()[0]
        )

    def test_service(self):
        def network(x):
            return collage.relay.tanh(x)

        relay = collage.relay
        x = relay.var("x", shape=(2, 3))
        path = in_folder("served.clg")
        collage.compile(relay.Function([x], network(x)), path, threads=1, partition_for="native")
        process = start("service", path, "--port", "0")
        try:
            port = int(process.stdout.readline().rsplit(":", 1)[1])
            client = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

            def ask(method: str, place: str, body: bytes = b"") -> tuple[int, bytes]:
                client.request(method, place, body)
                answer = client.getresponse()
                return answer.status, answer.read()

            code, health = ask("GET", "/health")
            self.assertEqual((code, json.loads(health)["model"]), (200, path))
            given = np.linspace(-1, 1, 6, dtype="float32").reshape(2, 3)
            body = io.BytesIO()
            np.savez(body, x=given)
            for _ in range(2):
                code, result = ask("POST", "/run", body.getvalue())
                self.assertEqual(code, 200, result)
                (output,) = np.load(io.BytesIO(result)).values()
                np.testing.assert_allclose(output, np.tanh(given), rtol=1e-5)
                self.assertEqual(ask("POST", "/reload")[0], 200)
            self.assertEqual(ask("POST", "/run", b"nonsense")[0], 400)
            self.assertEqual(ask("GET", "/nowhere")[0], 404)
        finally:
            process.terminate()
            process.communicate()
        said = self.run_example("service", path, "--measure", "0.2", "--clients", "2")
        self.assertRegex(said, r"Collage: \d+ requests/s, 2 clients")


if __name__ == "__main__":
    unittest.main()
