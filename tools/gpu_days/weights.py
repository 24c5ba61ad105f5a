"""Models without their weights, which are drawn again where the models are used: what is measured does not depend on
their values, only on their sizes. Needs onnx to take weights out, numpy to draw them."""

from __future__ import annotations

import json
from pathlib import Path

LEAST_BYTES = 4096


def take_out(model: Path, folder: Path) -> None:
    """Writes the model to `folder`, with the mean, spread and bounds of each float32 weight in the place of it."""
    import onnx
    from onnx import numpy_helper

    whole = onnx.load(model)
    drawn, offset = [], 0
    for tensor in whole.graph.initializer:
        if tensor.data_type != onnx.TensorProto.FLOAT:
            continue
        values = numpy_helper.to_array(tensor)
        if values.nbytes < LEAST_BYTES:
            continue
        drawn.append([values.size, *(float(one) for one in (values.mean(), values.std(), values.min(), values.max()))])
        for name in ("raw_data", "float_data"):
            tensor.ClearField(name)
        tensor.data_location = onnx.TensorProto.EXTERNAL
        for key, value in (("location", f"{model.stem}.weights"), ("offset", offset), ("length", values.nbytes)):
            entry = tensor.external_data.add()
            entry.key, entry.value = key, str(value)
        offset += values.nbytes
    (folder / model.name).write_bytes(whole.SerializeToString())
    (folder / f"{model.stem}.json").write_text(json.dumps(drawn))


def draw(model: Path) -> None:
    """Writes the weights beside a model that `take_out` wrote."""
    import numpy as np

    random = np.random.default_rng(0)
    with model.with_suffix(".weights").open("wb") as file:
        for size, mean, spread, least, most in json.loads(model.with_suffix(".json").read_text()):
            values = random.standard_normal(size, dtype=np.float32) * np.float32(spread) + np.float32(mean)
            file.write(np.clip(values, np.float32(least), np.float32(most)).tobytes())
