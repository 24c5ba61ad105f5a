"""The programs of examples and examples/python run by the commands of their pages, as they stand, on models that are there."""

import http.client
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np

import collage
from own_folder import in_folder, setUpModule, tearDownModule  # noqa: F401

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples"
MODELS = Path(os.environ.get("COLLAGE_MODELS", Path.home() / ".cache/collage/models"))
BUILD = Path(collage.__file__).resolve().parents[2]
FEWEST = 10  # programs that the two pages show


def rows_of(page: Path) -> dict[str, str]:
    """Returns the command by the file, from the rows of the page's table."""
    return dict(re.findall(r"^\| \[[^]]+\]\(([\w./]+)\) \|.*\| `([^`]+)` \|$", page.read_text(), re.MULTILINE))


def blocks_of(page: Path) -> list[str]:
    return re.findall(r"^    (\S.*)$", page.read_text(), re.MULTILINE)


class Project:
    """A folder like that of the project once it is built, and a home with the models: what commands write stays in them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "project"
        home = folder / "home"
        for link, target in (
            (self.folder / "examples", EXAMPLES),
            (self.folder / "build/dev", BUILD),
            (self.folder / ".venv", Path(sys.prefix)),
            (home / ".cache/collage/models", MODELS),
        ):
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(target, target_is_directory=True)
        left_out = ("COLLAGE_DATABASE", "COLLAGE_MODELS", "PYTHONPATH")
        self.environment = {name: value for name, value in os.environ.items() if name not in left_out}
        self.environment["HOME"] = str(home)

    def run(self, command: str, prepare: str = "true") -> str:
        done = subprocess.run(
            ["bash", "-ec", f"{prepare}\n{command}"], cwd=self.folder, env=self.environment, capture_output=True, text=True
        )
        if done.returncode != 0:
            raise AssertionError(f"{command}\nexit code {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done.stdout


class ExamplesTest(unittest.TestCase):
    """Each command of a table has a check of what it prints."""

    page: Path

    @classmethod
    def setUpClass(cls):
        for file in ("small/mobilenet_v2.onnx", "ocr/detector.onnx"):
            if not (MODELS / file).exists():
                raise unittest.SkipTest("no models; run tools/models/prepare-tests")
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.project = Project(Path(folder.name))
        cls.commands = rows_of(cls.page)

    def classes_in(self, output: str) -> list[str]:
        classes = re.findall(r"^class \d+: \d+\.\d+ %$", output, re.MULTILINE)
        self.assertEqual(len(classes), 5, output)
        return classes

    def check_speech(self, output: str) -> None:
        """Speech is found where it is: in the second of three thirds of two seconds."""
        probability = {float(at): float(value) for at, value in re.findall(r"^ *([\d.]+) s +([\d.]+)", output, re.MULTILINE)}
        self.assertLess(probability[0.26], 0.1)
        self.assertGreater(probability[1.02], 0.3)
        self.assertLess(probability[1.79], 0.1)


class InCTest(ExamplesTest):
    page = EXAMPLES / "README.md"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.lines = blocks_of(cls.page)
        for line in cls.lines:
            if line.startswith(("build/dev/bin/collage compile", "head")):
                cls.project.run(line)

    def run_row(self, file: str) -> str:
        return self.project.run(self.commands[file])

    def test_the_page_lists_all(self):
        self.assertEqual(set(self.commands), {path.name for path in EXAMPLES.glob("*.c*")})
        self.assertGreaterEqual(len(self.commands) + len(rows_of(EXAMPLES / "python/README.md")), FEWEST)

    def test_run_model(self):
        scores = self.project.folder / "scores.raw"
        written = []
        for file in ("run_model.c", "run_model.cc"):
            self.run_row(file)
            written.append(scores.read_bytes())
            scores.unlink()
        self.assertEqual(len(written[0]), 100 * 4)
        self.assertEqual(*written)

    def test_classify(self):
        output = self.run_row("classify.cc")
        classes = self.classes_in(output)
        shares = [float(line.split()[2]) for line in classes]
        self.assertEqual(shares, sorted(shares, reverse=True))

    def test_classify_sees_what_python_sees(self):
        """The picture is normalised as NumPy does it, where no pixel is between two others."""
        folder = self.project.folder
        pixels = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype="uint8")
        (folder / "own.ppm").write_bytes(b"P6\n# noise\n64 64\n255\n" + pixels.tobytes())
        printed = self.project.run("build/dev/examples/classify mobilenet_v2.clg own.ppm")
        mean, deviation = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
        image = ((pixels / 255 - mean) / deviation).transpose(2, 0, 1)[None].astype("float32")
        scores = collage.load(folder / "mobilenet_v2.clg")(image)[0]
        order = np.argsort(-scores)[:5]
        self.assertEqual([int(line.split()[1][:-1]) for line in self.classes_in(printed)], list(order))

    def test_classify_says_what_is_wrong(self):
        folder = self.project.folder
        (folder / "text.ppm").write_text("no picture")
        (folder / "short.ppm").write_bytes(b"P6 4 4 255 12")
        for arguments, words in (
            ("", "usage: classify"),
            ("mobilenet_v2.clg none.ppm", "cannot open picture 'none.ppm'"),
            ("mobilenet_v2.clg text.ppm", "'text.ppm' is no PPM file"),
            ("mobilenet_v2.clg short.ppm", "'short.ppm' ends before its last pixel"),
            ("speech.clg examples/picture.ppm", "'speech.clg' does not take one picture"),
        ):
            printed = self.project.run(f"code=0; build/dev/examples/classify {arguments} 2>&1 || code=$?; [ $code = 2 ]")
            self.assertIn(words, printed)

    def test_speech(self):
        self.check_speech(self.run_row("speech.cc"))

    def test_speech_reads_a_stream(self):
        samples = (np.random.default_rng(0).normal(0, 20, 16_000)).astype("<i2").tobytes()
        head = b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0" + np.array([16_000, 32_000], "<u4").tobytes() + b"\2\0\x10\0"
        (self.project.folder / "noise.wav").write_bytes(head + b"LIST\2\0\0\0abdata\xff\xff\xff\xff" + samples)
        streamed = self.project.run("cat noise.wav | build/dev/examples/speech speech.clg -")
        self.assertEqual(len(streamed.splitlines()), 4, "31 pieces, one of 8 shown")
        self.assertEqual(streamed, self.project.run("build/dev/examples/speech speech.clg noise.wav"))
        (self.project.folder / "stereo.wav").write_bytes(head.replace(b"\1\0\1\0", b"\1\0\2\0") + b"data\0\0\0\0")
        command = "code=0; build/dev/examples/speech speech.clg stereo.wav 2>&1 || code=$?; [ $code = 2 ]"
        self.assertIn("'stereo.wav' is not PCM with 16,000 samples a second", self.project.run(command))

    def test_outside_of_the_tree(self):
        for line in self.lines:
            if line.startswith(("cmake", "g++")):
                self.project.run(line)
        self.classes_in(self.project.run("env -u LD_LIBRARY_PATH ./classify mobilenet_v2.clg examples/picture.ppm"))


class InPythonTest(ExamplesTest):
    page = EXAMPLES / "python/README.md"

    def run_row(self, file: str, then: str = "") -> str:
        (path,) = blocks_of(self.page)
        return self.project.run(self.commands[file] + then, prepare=path)

    def test_the_page_lists_all(self):
        self.assertEqual(set(self.commands), {path.name for path in (EXAMPLES / "python").glob("*.py")})

    def test_classify_compiles_once_for_the_service(self):
        first = self.classes_in(self.run_row("classify.py"))
        written = (self.project.folder / "mobilenet_v2.clg").stat().st_mtime_ns
        self.assertEqual(first, self.classes_in(self.run_row("classify.py")))
        self.assertEqual(written, (self.project.folder / "mobilenet_v2.clg").stat().st_mtime_ns)
        self.assertRegex(self.run_row("service.py"), r"Collage: \d+ requests/s, 4 clients")

    def test_speech(self):
        self.check_speech(self.run_row("speech.py"))

    def test_ocr_finds_and_reads_five_lines(self):
        lines = self.run_row("ocr.py").splitlines()
        self.assertEqual(len([line for line in lines if line.startswith("rows ")]), 5, lines)
        self.assertIn("LAGE", lines[0])  # of COLLAGE, in dots

    def test_embed_finds_like_sentences(self):
        rows = [[float(word) for word in line.split()[:3]] for line in self.run_row("embed.py").splitlines()]
        np.testing.assert_allclose(np.diag(rows), 1, atol=0.01)
        np.testing.assert_allclose(rows, np.transpose(rows), atol=0.011)
        self.assertGreater(rows[0][1], rows[0][2] + 0.3)
        self.assertIn("--model and --vocabulary go together", self.run_row("embed.py", " --model x 2>&1 || true"))

    def test_decode_says_the_same_again(self):
        first = self.run_row("decode.py")
        self.assertEqual(len(first.splitlines()[0].split()), 33)
        again = self.run_row("decode.py", " --budget 4s --tokens 6")
        self.assertEqual(first.split()[:7], again.split()[:7])

    def test_service_answers(self):
        x = collage.relay.var("x", shape=(2, 3))
        path = in_folder("served.clg")
        function = collage.relay.Function([x], collage.relay.tanh(x))
        collage.compile(function, path, threads=1, partition_for="native")
        command = [sys.executable, str(EXAMPLES / "python/service.py"), path, "--port", "0"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.terminate)
        client = http.client.HTTPConnection("127.0.0.1", int(process.stdout.readline().rsplit(":", 1)[1]), timeout=60)
        self.addCleanup(client.close)

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


del ExamplesTest


if __name__ == "__main__":
    unittest.main()
