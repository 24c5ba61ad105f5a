"""How a compilation tells how far it is: to a function, as a bar, or in lines."""

from __future__ import annotations

import contextlib
import importlib
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from collage._pictures import time_text


@dataclass(frozen=True)
class Progress:
    """Current work of the compiler.

    ``phase`` is "import", "candidates", "search", "checkpoint", "play-off", "explain" or, of programs, "check"; ``done``
    counts measurements in the search and rounds in the play-off, ``total`` the play-off's rounds (None if unknown);
    ``from_database`` counts known costs. Once an executable is written while the search goes on, ``best_seconds`` is
    its median, and ``gap`` the share by which a better mix may be faster, where that is known.
    """

    phase: str
    done: int = 0
    total: int | None = None
    from_database: int = 0
    what: str = ""
    best_seconds: float | None = None
    gap: float | None = None


class _Teller:
    """Receives progress from the C++ side."""

    def __init__(self, tell: Callable[[Progress], object]) -> None:
        self._tell = tell
        self._phase = ""

    def phase(self, name: str) -> None:
        self._phase = name
        self._tell(Progress(name))

    def measuring(self, measured: int, from_database: int, what: str) -> None:
        self._tell(Progress(self._phase, measured, None, from_database, what))

    def written(self, seconds: float, gap: float | None) -> None:
        self._tell(Progress(self._phase, best_seconds=seconds, gap=gap))

    def play_off(self, round_: int, rounds: int, what: str) -> None:
        self._tell(Progress(self._phase, round_, rounds or None, 0, what))

    def warn(self, text: str) -> None:
        warnings.warn(text, stacklevel=3)  # at the call of collage.compile


class _Lines:
    """Prints each phase once, and every few seconds how far it is, to standard error."""

    _PERIOD_SECONDS = 5.0

    def __init__(self) -> None:
        self._phases: set[str] = set()
        self._printed = 0.0

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        if progress.phase in self._phases and now - self._printed < self._PERIOD_SECONDS:
            return
        self._phases.add(progress.phase)
        self._printed = now
        total = "" if progress.total is None else f" of {progress.total}"
        done = f" {progress.done}{total}" if progress.done or total else ""
        print(f"collage: {progress.phase}{done} {progress.what}".rstrip(), file=sys.stderr)

    def close(self) -> None:
        """Ends the report."""


class _Bar:
    """A bar of tqdm: counts the measurements of the search, then the rounds of the play-off."""

    _WHAT_COLUMNS = 40

    def __init__(self, tqdm: Any) -> None:
        self._bar = tqdm(desc="collage", unit="", miniters=1, mininterval=0.2, dynamic_ncols=True, leave=False)
        self._phase = ""
        self._best = ""

    def __call__(self, progress: Progress) -> None:
        if progress.best_seconds is not None:
            self._best = f"best {time_text(progress.best_seconds)}"
        what = ", ".join(filter(None, [self._best, progress.what[: self._WHAT_COLUMNS]]))
        self._bar.set_postfix_str(what, refresh=False)
        if progress.phase != self._phase:
            self._phase = progress.phase
            self._bar.set_description_str(f"collage: {progress.phase}", refresh=False)
            self._bar.reset(progress.total)
        self._bar.total = progress.total
        self._bar.update(max(progress.done - self._bar.n, 0))

    def close(self) -> None:
        """Takes the bar away."""
        self._bar.close()


def _in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and "IPKernelApp" in shell.config


def _display() -> _Bar | _Lines:
    """A bar where one can be drawn and tqdm is installed, else lines."""
    if _in_notebook() or sys.stderr.isatty():
        with contextlib.suppress(ImportError), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # tqdm's, that a notebook lacks ipywidgets: it draws the bar as text then
            return _Bar(importlib.import_module("tqdm.auto").tqdm)
    return _Lines()


@contextlib.contextmanager
def telling(progress: bool | Callable[[Progress], object]) -> Iterator[_Teller]:
    """Gives the object that the C++ side tells its progress; ``progress`` is that of `collage.compile`."""
    if callable(progress):
        yield _Teller(progress)
        return
    if not progress:
        yield _Teller(lambda _: None)
        return
    display = _display()
    try:
        yield _Teller(display)
    finally:
        display.close()
