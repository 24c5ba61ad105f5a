"""Targets: a kind of device, and how it is used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from collage import _core

__all__ = ["Target", "Targets", "as_targets", "kinds"]


class Target:
    """``Target("llvm -compiler=dnnl", host)``: a kind of device, and how it is used.

    Several targets may be of one kind of device: each toolchain that may take part has its own.

    >>> host = Target("llvm")
    >>> target = Target("llvm -compiler=dnnl", host)
    >>> target.compiler, target.host == host, target.refines(Target("llvm", host))
    ('dnnl', True, True)

    Args:
        target: "KIND -option=value …"; values with blanks are quoted. Or a target, which is taken as it is.
        host: what runs the code around; a target or its text.

    Raises:
        InputError: an unknown kind or option, a value of another type; the message names the character.
    """

    def __init__(self, target: str | Target, host: str | Target | None = None) -> None:
        text = str(target)
        self.host: Target | None = None
        if host is not None:
            self.host = host if isinstance(host, Target) else Target(host)
            quote = '"' if "'" in str(self.host) else "'"
            text += f" -host={quote}{self.host}{quote}"
        elif isinstance(target, Target):
            self.host = target.host
        self._core = _core.TargetCore(text)

    @property
    def kind(self) -> str:
        """The kind of device, one of `kinds()`."""
        return self._core.kind

    @property
    def device_type(self) -> int:
        """Its DLDeviceType: 1 is the processor, 2 a CUDA device."""
        return self._core.device_type

    @property
    def compiler(self) -> str:
        """Which toolchain; empty for native code."""
        return self._core.compiler

    @property
    def partition_rule(self) -> str:
        """JSON of the rule that finds its candidates; empty for the one that follows from the toolchain."""
        return self._core.partition_rule

    @property
    def options(self) -> dict[str, object]:
        """All options by name."""
        return self._core.options

    def refines(self, other: Target) -> bool:
        """Whether this says more than ``other`` of how to use the same thing, and all else agrees."""
        return self._core.refines(other._core)

    def __str__(self) -> str:
        return str(self._core)

    def __repr__(self) -> str:
        return f"Target({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Target) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))


Targets = str | Target | Sequence[str | Target] | Mapping[object, str | Target] | None


def as_targets(target: Targets) -> list[Target]:
    """One target, its text, a list of them, or a mapping to them, as a list; None is the processor.

    >>> as_targets(["llvm", "llvm -compiler=dnnl"])
    [Target('llvm'), Target('llvm -compiler=dnnl')]
    """
    if target is None:
        target = "llvm"
    if isinstance(target, (str, Target)):
        return [Target(target)]
    values = target.values() if isinstance(target, Mapping) else target
    return [Target(one) for one in values]


def kinds() -> dict[str, str]:
    """The kinds of devices that targets can name, and what they are.

    >>> kinds()["llvm"]
    'processors'
    """
    return _core.target_kinds()
