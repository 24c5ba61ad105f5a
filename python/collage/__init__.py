"""Collage: compiles a trained model into one file that runs it at the lowest latency measured on this machine.

It measures which sub-graphs run fastest on which toolchain, and covers the model with the best mix::

    exe = collage.compile("model.onnx", threads=1, budget="5m")
    result = exe(x)

``collage.relay`` builds and reads programs, ``collage.transform`` has passes, ``collage.relay.dataflow_pattern`` and
``collage.relay.collage`` patterns, rules and your own partitioning.
"""

from __future__ import annotations

import os
import sys

if sys.executable:  # programs that Collage starts run in the same Python; before anything asks for it
    os.environ.setdefault("COLLAGE_PYTHON", sys.executable)

from collage import _core, costs, database, errors, explanations, frontend, relay, reports, target, toolchain, transform
from collage._compile import compile, operator_table, support, toolchains, tune
from collage._core import Instance, IRModule, SearchTask, TimedStep
from collage._executable import Executable, Partition, explanation, load, require_signatures, sign
from collage._ports import NodeArg, Port, empty
from collage._progress import Progress
from collage._settings import Settings
from collage._timings import BenchmarkSummary
from collage.costs import CostEstimator, estimators, register_estimator
from collage.database import TuningDatabase
from collage.errors import (
    CorruptError,
    Error,
    InputError,
    InternalError,
    MissingFileError,
    ResourceError,
    UnavailableError,
    UnsupportedError,
)
from collage.relay import parse, parse_expr
from collage.target import Target
from collage.toolchain import Toolchain, register_toolchain

__version__: str = _core.version()

__all__ = [
    "BenchmarkSummary",
    "CorruptError",
    "CostEstimator",
    "Error",
    "Executable",
    "IRModule",
    "InputError",
    "Instance",
    "InternalError",
    "MissingFileError",
    "NodeArg",
    "Partition",
    "Port",
    "Progress",
    "ResourceError",
    "SearchTask",
    "Settings",
    "Target",
    "TimedStep",
    "Toolchain",
    "TuningDatabase",
    "UnavailableError",
    "UnsupportedError",
    "__version__",
    "compile",
    "costs",
    "database",
    "empty",
    "errors",
    "estimators",
    "explanation",
    "explanations",
    "frontend",
    "load",
    "operator_table",
    "parse",
    "parse_expr",
    "register_estimator",
    "register_toolchain",
    "relay",
    "reports",
    "require_signatures",
    "sign",
    "support",
    "target",
    "toolchain",
    "toolchains",
    "transform",
    "tune",
]
