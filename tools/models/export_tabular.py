#!/usr/bin/env python3
"""export_tabular.py: trains the models of tabular_models.py on random rows, and writes them as ONNX files.

    export_tabular.py [--folder FOLDER] [NAME…]

Needs scikit-learn, skl2onnx, onnxmltools, lightgbm, xgboost and pandas, which no test of Collage needs: use an environment of
its own. Files that are there are left alone. A model that cannot be converted is reported, and the next one tried.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pandas
from lightgbm import LGBMClassifier, LGBMRegressor  # noqa: F401
from onnxmltools import convert_lightgbm, convert_xgboost
from onnxmltools.convert.common.data_types import FloatTensorType as OtherFloats
from skl2onnx import to_onnx
from skl2onnx.common.data_types import FloatTensorType, StringTensorType
from sklearn.utils import all_estimators
from xgboost import XGBClassifier, XGBRegressor  # noqa: F401

from make_models import default_folder
from tabular_models import FEATURES, TABULAR, WORDS, Tabular, files_of

ROWS = 200
COLUMNS = [("a", FloatTensorType([None, 1])), ("b", FloatTensorType([None, 1])), ("c", StringTensorType([None, 1]))]


def made(expression: str) -> Any:
    """The model, untrained, with the names of all libraries' classes."""
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline

    known = dict(all_estimators()) | {k: v for k, v in globals().items() if k.startswith(("LGBM", "XGB"))}
    known |= {"make_pipeline": make_pipeline, "make_column_transformer": make_column_transformer}
    return eval(expression, known)


def train(row: Tabular, has_strings: bool) -> onnx.ModelProto:
    random = np.random.default_rng(1)
    x = random.standard_normal((ROWS, FEATURES)).astype(np.float32)
    classes = np.digitize(x[:, 0] + x[:, 1], [-0.5, 0.5])
    words = random.choice(WORDS[:3], (ROWS, 1)).astype(object)
    numbers = np.abs(x @ random.standard_normal(FEATURES)) + 0.1
    wanted: Any = {"classes": classes, "number": numbers}.get(row.task)
    if has_strings or row.task == "mixed":
        wanted = np.array(["low", "middle", "high"])[classes]
    if row.task == "mixed":
        table = pandas.DataFrame({"a": x[:, 0], "b": x[:, 1], "c": words[:, 0]})
        return to_onnx(made(row.make).fit(table, wanted), initial_types=COLUMNS)
    if row.task == "words":
        data = words[:, 0] if row.name.startswith("label") else words
        return to_onnx(made(row.make).fit(data), initial_types=[("c", StringTensorType([None, 1]))])
    model = made(row.make).fit(x, wanted)
    if row.library == "scikit-learn":
        return to_onnx(model, initial_types=[("x", FloatTensorType([None, FEATURES]))])
    convert = convert_lightgbm if row.library == "LightGBM" else convert_xgboost
    return convert(model, initial_types=[("x", OtherFloats([None, FEATURES]))], target_opset=15)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help="models to train; all of them if none is given")
    parser.add_argument("--folder", type=Path, default=default_folder(), help="parent folder (default: %(default)s)")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    folder = args.folder / "tabular"
    folder.mkdir(parents=True, exist_ok=True)
    for row in TABULAR:
        for number, path in enumerate(files_of(row, folder)):
            if path.exists() or args.names and row.name not in args.names:
                continue
            try:
                onnx.save(train(row, has_strings=number > 0), path)
            except Exception as error:  # one model's failure leaves the others
                print(f"{path.stem:32s} not converted: {str(error).splitlines()[0][:160]}", flush=True)


if __name__ == "__main__":
    main()
