"""Times of runs, summed up."""

from __future__ import annotations

from typing import Any

import numpy as np

from collage import _pictures


class BenchmarkSummary(list[float]):
    """Times of runs: a list of the seconds of each, in their order, with their percentiles.

    >>> times = BenchmarkSummary([3e-3, 1e-3, 2e-3])
    >>> times.p50, times.count, len(times)
    (0.002, 3, 3)
    >>> times
    <BenchmarkSummary p50 2.00 ms, p90 2.80 ms, p99 2.98 ms of 3 runs>
    """

    @property
    def count(self) -> int:  # type: ignore[override]  # a list's method of that name counts equal elements
        """How many runs were timed."""
        return len(self)

    @property
    def samples(self) -> list[float]:
        """Seconds of each run, as a list of its own."""
        return list(self)

    def percentile(self, percent: float) -> float:
        """Returns the seconds that ``percent`` % of the runs do not exceed, interpolated between runs; NaN without runs."""
        return float(np.percentile(np.asarray(self.samples), percent)) if self else float("nan")

    @property
    def p50(self) -> float:
        """The median, in seconds."""
        return self.percentile(50)

    @property
    def p90(self) -> float:
        """The 90th percentile, in seconds."""
        return self.percentile(90)

    @property
    def p99(self) -> float:
        """The 99th percentile, in seconds."""
        return self.percentile(99)

    @property
    def mean(self) -> float:
        """The mean, in seconds."""
        return sum(self) / len(self) if self else float("nan")

    @property
    def min(self) -> float:
        """The shortest run, in seconds."""
        return self.percentile(0)

    @property
    def max(self) -> float:
        """The longest run, in seconds."""
        return self.percentile(100)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Lets functions of NumPy take it as an array: they would call its ``mean``."""

        def plain(value: Any) -> Any:
            if isinstance(value, BenchmarkSummary):
                return np.asarray(value.samples)
            return type(value)(map(plain, value)) if type(value) in (list, tuple) else value

        return function(*plain(args), **{name: plain(value) for name, value in kwargs.items()})

    def __repr__(self) -> str:
        p50, p90, p99 = map(_pictures.time_text, (self.p50, self.p90, self.p99))
        return f"<BenchmarkSummary p50 {p50}, p90 {p90}, p99 {p99} of {len(self)} runs>"

    def _repr_html_(self) -> str:
        return _pictures.of_samples(self)
