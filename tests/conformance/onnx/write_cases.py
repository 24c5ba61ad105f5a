"""Writes the node test cases of the installed onnx package as files that the conformance test reads.

Each case becomes NAME.onnx and NAME.npz, which holds the inputs as "in.N", the outputs as "out.N", the tolerances as
"rtol" and "atol", and "random" where results are drawn at random. Arrays of bfloat16 are stored by their bits under
names that end in ":bfloat16"; integers of fewer than 8 bits as those of 8 bits, floats of 4 and 8 bits by their codes.
Sequence N has its elements as "in.N.0", "in.N.1", …, and how many there are as "in.N.length", as has an optional value
that is not there. A case whose data is not all numbers and strings (maps) gets no arrays, only its model.

Usage: write_cases.py FOLDER
"""

import hashlib
import pathlib
import sys
import warnings

import numpy as np
import onnx

# What NumPy's own file format can hold.
PLAIN = {np.dtype(t) for t in ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16",
                               "uint32", "uint64", "bool")}
# Random numbers of one generator: the results of others have the same shapes.
RANDOM = ("test_bernoulli", "test_training_dropout")
FEW_BITS = ("int2", "int4", "uint2", "uint4")


def named_values(case) -> list[tuple[str, object]]:
    """Names and tensors of the case's one data set; lengths of sequences among them."""
    values: list[tuple[str, object]] = []
    inputs, outputs = case.data_sets[0]
    for prefix, group in (("in", inputs), ("out", outputs)):
        for i, value in enumerate(group):
            name = f"{prefix}.{i}"
            if value is None or isinstance(value, list):
                elements = value or []
                values.append((f"{name}.length", np.array(len(elements), np.int64)))
                values += [(f"{name}.{j}", element) for j, element in enumerate(elements)]
            else:
                values.append((name, value))
    return values


def arrays_of(case) -> dict[str, np.ndarray] | None:
    """The arrays of the case's one data set, or None when one of them cannot be stored."""
    arrays: dict[str, np.ndarray] = {}
    for name, value in named_values(case):
        if isinstance(value, onnx.TensorProto):
            value = onnx.numpy_helper.to_array(value)
        if isinstance(value, dict):
            return None
        array = np.require(value, requirements="C")
        if array.dtype.kind == "O":
            array = array.astype(str)
        if array.dtype.name == "bfloat16":
            array, name = array.view(np.uint16), name + ":bfloat16"
        if array.dtype.name in FEW_BITS:
            array = array.astype(np.int8 if array.dtype.name.startswith("int") else np.uint8)
        elif array.dtype.name.startswith("float") and array.dtype.itemsize == 1:
            array = array.view(np.uint8)
        if array.dtype not in PLAIN and array.dtype.kind != "U":
            return None
        arrays[name] = array
    return arrays


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    stamp = folder / "stamp"
    version = onnx.__version__ + " " + hashlib.sha256(pathlib.Path(__file__).read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == version:
        return
    warnings.simplefilter("ignore")
    from onnx.backend.test.case.node import collect_testcases  # slow: every case is made when this is called

    folder.mkdir(parents=True, exist_ok=True)
    for old in (*folder.glob("*.onnx"), *folder.glob("*.npz")):
        old.unlink()
    for case in collect_testcases(None):
        onnx.save(case.model, folder / f"{case.name}.onnx")
        arrays = arrays_of(case)
        if arrays is None:
            continue
        arrays["rtol"] = np.array(case.rtol, np.float64)
        arrays["atol"] = np.array(case.atol, np.float64)
        if case.name.startswith(RANDOM) and "zero_ratio" not in case.name:
            arrays["random"] = np.array(True)
        np.savez(folder / f"{case.name}.npz", **arrays)
    stamp.write_text(version)


if __name__ == "__main__":
    main()
