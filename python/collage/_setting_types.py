"""Types of settings that have names in annotations."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from collage._core import SearchTask

CheckInputs = Mapping[str, Any] | str | os.PathLike[str]
"""Arrays by the names of inputs, or an .npz file of such."""

Search = Callable[[SearchTask], Sequence[Sequence[int]]]
"""A custom search: covers, best first, as lists of candidates."""
