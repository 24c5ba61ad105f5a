"""Costs of candidates from Python, for `collage.compile`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from collage import _core
from collage._core import IRModule
from collage.errors import InputError
from collage.target import Target

__all__ = ["CostEstimator", "Estimate", "as_estimate", "estimators", "register_estimator"]

Estimate = Callable[[IRModule, Target], float]


@runtime_checkable
class CostEstimator(Protocol):
    """Source of candidates' costs (RFC 0.81, Appendix E)."""

    def estimate(self, mod: IRModule, target: Target) -> float:
        """Returns the cost of ``main`` of ``mod`` as a kernel for ``target``; called once for each different candidate.

        Returns:
            Seconds, not negative; infinity if it cannot be run, NaN if unknown: it is then chosen only if there is no
            other way.
        """


_registered: dict[str, Callable[[], CostEstimator | Estimate]] = {}


def estimators() -> dict[str, str]:
    """Returns the built-in estimators: values of ``estimator`` of `collage.compile`, and their meanings.

    >>> "measure" in estimators()
    True
    """
    return dict(_core.estimators())


def _is_built_in(name: str) -> bool:
    return name.partition("=")[0] in {usage.partition("=")[0] for usage in estimators()}


def register_estimator(name: str, factory: Callable[[], CostEstimator | Estimate]) -> None:
    """Makes an estimator known by a name that `collage.compile` takes as ``estimator``.

    Args:
        name: replaces an earlier estimator of that name.
        factory: called for each compilation.

    Raises:
        InputError: a built-in estimator has that name.

    >>> register_estimator("by operators", lambda: lambda mod, target: 1e-6 * len(mod.main.post_order()))
    """
    if _is_built_in(name):
        raise InputError(f"estimator '{name}' is built in")
    _registered[name] = factory


def as_estimate(estimator: str | CostEstimator | Estimate) -> Callable[[IRModule, str], float] | None:
    """Returns the function that the compiler calls, with a target as text; None for the name of a built-in estimator.

    Raises:
        InputError: there is no estimator of that name.
    """
    if isinstance(estimator, str):
        if _is_built_in(estimator):
            return None
        if estimator not in _registered:
            known = ", ".join([*estimators(), *_registered])
            raise InputError(f"there is no estimator '{estimator}'", hint=f"there are: {known}")
        estimator = _registered[estimator]()
    estimate = estimator.estimate if isinstance(estimator, CostEstimator) else estimator
    return lambda mod, target: estimate(mod, Target(target))
