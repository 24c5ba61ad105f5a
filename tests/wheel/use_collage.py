"""use_collage.py MODEL VALUES TOOLCHAIN…: uses a wheel of Collage that is installed for the Python that runs this.

The model is compiled and run, and the results are those of VALUES (.npz: "in.NAME", "out.NAME"). Each toolchain computes a
product. Libraries of Collage are those of the package, and Python's own modules get the system's.
"""

import sys
from pathlib import Path

import numpy as np

import collage
from collage import relay

model, values, wanted = sys.argv[1], np.load(sys.argv[2]), sys.argv[3:]
import ctypes  # noqa: E402, F401  after Collage: with libraries of equal names they would be given its own
import sqlite3  # noqa: E402
import ssl  # noqa: E402
import zlib  # noqa: E402, F401

executable = collage.compile(model, threads=1, budget="10s")
results = executable.run({name.removeprefix("in."): values[name] for name in values if name.startswith("in.")})
for name, result in results.items():
    np.testing.assert_allclose(result, values[f"out.{name}"], rtol=1e-4, atol=1e-5)
executable.save("python.clg")


def check_product(toolchain: str) -> None:
    """On a busy machine, measuring may take the threads of a library for running on after a run: three attempts."""
    x, weights = relay.var("x", shape=(2, 8)), relay.const(np.ones((4, 8), "float32"))
    for attempt in range(3):
        database = f"{toolchain}{attempt}.db"
        product = collage.compile(
            relay.Function([x], relay.nn.dense(x, weights)), threads=1, partition_for=toolchain, database=database
        )
        if {part.toolchain for part in product.partitions} == {toolchain}:
            break
    else:
        raise AssertionError(f"{toolchain} computes nothing: {product.report['failures']}")
    assert product(np.ones((2, 8), "float32")).tolist() == [[8] * 4] * 2


for name in wanted:
    check_product(name)
available = {row["name"] for row in collage.toolchains() if row["available"]}
assert available >= set(wanted), available

package = Path(collage.__file__).parent
with open("/proc/self/maps") as file:
    loaded = {Path(line.split()[-1]) for line in file if ".so" in line}
inside = {path.name.partition(".")[0] for path in (package / "lib").rglob("*.so*")}
own = [path for path in loaded if path.name.partition(".")[0] in inside]
assert own and all(package in path.parents for path in own), own
assert ssl.OPENSSL_VERSION and sqlite3.sqlite_version
print("used", ", ".join(sorted(available)))
