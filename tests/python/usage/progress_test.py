"""Progress: a bar where tqdm can draw one, else lines that do not flood."""

import contextlib
import io
import unittest
from unittest import mock

from collage import Progress, _progress


class Stream(io.StringIO):
    """Standard error, which is a terminal or not."""

    def __init__(self, is_terminal):
        super().__init__()
        self.is_terminal = is_terminal

    def isatty(self):
        return self.is_terminal


class FakeBar:
    """As much of tqdm as is used."""

    def __init__(self, **options):
        self.n, self.total, self.calls = 0, None, []

    def reset(self, total=None):
        self.n = 0
        self.calls.append(("reset", total))

    def set_description_str(self, text, refresh=True):
        self.calls.append(("description", text))

    def set_postfix_str(self, text, refresh=True):
        self.calls.append(("postfix", text))

    def update(self, by):
        self.n += by

    def close(self):
        self.calls.append(("close", self.n))


@contextlib.contextmanager
def standard_error(is_terminal):
    stream = Stream(is_terminal)
    with mock.patch("sys.stderr", stream):
        yield stream


def search(teller, measurements):
    teller.phase("search")
    for i in range(measurements):
        teller.measuring(i + 1, 2, f"native: nn.conv2d+{'add+' * 30}nn.relu")


class Lines(unittest.TestCase):
    def test_a_line_for_each_phase(self):
        with standard_error(False) as stream, _progress.telling(True) as teller:
            for _ in range(50):  # regions of a program
                search(teller, 100)
                teller.phase("play-off")
                for i in range(100):
                    teller.play_off(i, 100, "")
        self.assertEqual(stream.getvalue().splitlines(), ["collage: search", "collage: play-off"])

    def test_lines_while_a_phase_lasts(self):
        clock = iter(range(1000))
        with mock.patch("time.monotonic", lambda: next(clock)), standard_error(False) as stream:
            with _progress.telling(True) as teller:
                search(teller, 20)
        lines = stream.getvalue().splitlines()
        self.assertEqual(lines[0], "collage: search")
        self.assertEqual([line.split()[2] for line in lines[1:]], ["5", "10", "15", "20"])

    def test_without_tqdm(self):
        with standard_error(True) as stream, mock.patch.dict("sys.modules", {"tqdm.auto": None}):
            with _progress.telling(True) as teller:
                search(teller, 3)
        self.assertEqual(stream.getvalue(), "collage: search\n")


class Bars(unittest.TestCase):
    def told(self, tell):
        bars = []

        def make(**options):
            bars.append(FakeBar(**options))
            return bars[-1]

        module = mock.Mock(tqdm=make)
        with standard_error(True), mock.patch.dict("sys.modules", {"tqdm.auto": module}):
            with contextlib.suppress(KeyboardInterrupt), _progress.telling(True) as teller:
                tell(teller)
        self.assertEqual(len(bars), 1)
        return bars[0]

    def test_counts_measurements_and_rounds(self):
        def tell(teller):
            search(teller, 7)
            teller.written(2.5e-3, 0.1)
            teller.phase("play-off")
            for i in range(3):
                teller.play_off(i + 1, 20, "native")

        bar = self.told(tell)
        self.assertEqual((bar.n, bar.total), (3, 20))
        self.assertIn(("description", "collage: search"), bar.calls)
        self.assertIn(("postfix", "best 2.50 ms, native"), bar.calls)
        self.assertTrue(all(len(text) <= 60 for call, text in bar.calls if call == "postfix"))
        self.assertEqual(bar.calls[-1][0], "close")

    def test_a_notebook_has_one_without_a_terminal(self):
        made = []
        for config, wanted in [({"IPKernelApp": {}}, 1), ({}, 0)]:  # a kernel of Jupyter, IPython in a pipe
            ipython = mock.Mock(get_ipython=lambda config=config: mock.Mock(config=config))
            bars = mock.Mock(tqdm=lambda **options: made.append(FakeBar()) or made[-1])
            made.clear()
            with standard_error(False), mock.patch.dict("sys.modules", {"IPython": ipython, "tqdm.auto": bars}):
                with _progress.telling(True) as teller:
                    search(teller, 1)
            self.assertEqual(len(made), wanted)

    def test_is_closed_when_the_compilation_fails(self):
        def tell(teller):
            search(teller, 2)
            raise KeyboardInterrupt

        self.assertEqual(self.told(tell).calls[-1][0], "close")

    def test_with_tqdm_itself(self):
        try:
            import tqdm.auto  # noqa: F401
        except ImportError:
            self.skipTest("tqdm is not installed")
        with standard_error(True) as stream, _progress.telling(True) as teller:
            search(teller, 500)
            teller.phase("play-off")
            teller.play_off(20, 20, "")
        self.assertIn("collage", stream.getvalue())
        self.assertLess(stream.getvalue().count("\r"), 20)


class Functions(unittest.TestCase):
    def test_a_function_gets_all(self):
        seen = []
        with _progress.telling(seen.append) as teller:
            search(teller, 2)
        self.assertEqual([one.done for one in seen], [0, 1, 2])
        self.assertEqual(seen[0], Progress("search"))

    def test_none_is_shown(self):
        with standard_error(True) as stream, _progress.telling(False) as teller:
            search(teller, 2)
        self.assertEqual(stream.getvalue(), "")


if __name__ == "__main__":
    unittest.main()
