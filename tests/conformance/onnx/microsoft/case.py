"""A case, what random ones are made of, and the list of all makers."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray


@dataclass
class Case:
    """A node: its attributes, arrays by position (None: absent), and which of them are weights of the model."""

    inputs: list[Array | None]
    attributes: dict[str, Any] = field(default_factory=dict)
    weights: tuple[int, ...] = ()
    outputs: tuple[bool, ...] = (True,)
    domain: str = "com.microsoft"
    version: int = 1  # of the domain
    tolerance: float = 2e-5  # of the largest element
    steps: int = 0  # by which integers may be off
    results: list[Array] | None = None  # of an operator that ONNX Runtime has on GPUs only


class Random:
    """Draws what cases are made of."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def size(self, low: int, high: int) -> int:
        """Returns a number from low to high."""
        return int(self.rng.integers(low, high + 1))

    def flag(self) -> bool:
        """Returns either truth value."""
        return bool(self.rng.integers(2))

    def choice(self, values: Any, shape: tuple[int, ...] | None = None) -> Any:
        """Returns one of some values, or of an array an array of them."""
        return values[self.rng.integers(len(values), size=shape)]

    def labels(self, attribute: str, numbers: list[int]) -> dict[str, Any]:
        """Returns the attribute of class labels: these numbers, or strings in their place."""
        if self.flag():
            return {attribute: numbers}
        return {"classlabels_strings": [f"class {number}" for number in numbers]}

    def floats(self, *shape: int, dtype: Any = np.float32) -> Array:
        """Returns normally distributed numbers."""
        return self.rng.standard_normal(shape).astype(dtype)

    def bytes(self, *shape: int, dtype: Any = np.uint8) -> Array:
        """Returns integers of a dtype's whole range."""
        info = np.iinfo(dtype)
        return self.rng.integers(info.min, info.max + 1, shape).astype(dtype)

    def below(self, bound: int, *shape: int, dtype: Any = np.int64) -> Array:
        """Returns integers from 0 to bound - 1."""
        return self.rng.integers(0, bound, shape).astype(dtype)

    def scale(self, *shape: int) -> Array:
        """Returns scales of quantised tensors."""
        return self.rng.uniform(0.005, 0.05, shape).astype(np.float32)

    def shape(self, low: int = 1, high: int = 4) -> tuple[int, ...]:
        """Returns a shape of a rank between low and high."""
        return tuple(self.size(1, 5) for _ in range(self.size(low, high)))


Maker = Callable[[Random], Case]
MAKERS: dict[str, Maker] = {}


def case(name: str) -> Callable[[Maker], Maker]:
    """Registers what makes cases of the operator `name`."""

    def register(maker: Maker) -> Maker:
        MAKERS[name] = maker
        return maker

    return register
