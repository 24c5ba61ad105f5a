"""Operators of ai.onnx.ml that prepare features."""

from typing import Any

import numpy as np
from microsoft.case import Array, Case, Random, case
from onnx import numpy_helper

from ml.trees import DOMAIN

NUMBERS = (np.float32, np.float64, np.int64, np.int32)


def rows_of(r: Random, features: int, dtypes: Any = NUMBERS) -> Array:
    """Returns rows of small integers and halves, some of them 0."""
    rows = r.rng.integers(-5, 6, (r.size(1, 6), features)) / 2
    return rows.astype(r.choice(dtypes))


@case("Scaler")
def scaler(r: Random) -> Case:
    """Differences times factors."""
    features = r.size(1, 5)
    count = features if r.flag() else 1
    attributes = {"offset": r.floats(count).tolist(), "scale": r.floats(count).tolist()}
    return Case([rows_of(r, features)], attributes, domain=DOMAIN)


@case("Normalizer")
def normalizer(r: Random) -> Case:
    """Rows by their norms."""
    x = rows_of(r, r.size(1, 5))
    x[r.size(0, len(x) - 1)] = 0
    return Case([x], {"norm": str(r.choice(["MAX", "L1", "L2"]))}, domain=DOMAIN)


@case("Imputer")
def imputer(r: Random) -> Case:
    """Values in place of missing ones."""
    features = r.size(1, 5)
    count = features if r.flag() else 1
    if r.flag():
        values = r.below(100, count).tolist()
        x = rows_of(r, features, (np.int64,))
        return Case([x], {"replaced_value_int64": 1, "imputed_value_int64s": values}, domain=DOMAIN)
    x, missing = rows_of(r, features, (np.float32,)), 0.5
    if r.flag():
        x[x == 1] = missing = np.nan
    attributes = {"replaced_value_float": missing, "imputed_value_floats": r.floats(count).tolist()}
    return Case([x], attributes, domain=DOMAIN)


@case("Binarizer")
def binarizer(r: Random) -> Case:
    """Whether numbers are above a threshold."""
    return Case([rows_of(r, 3, (np.float32,))], {"threshold": 0.5} if r.flag() else {}, domain=DOMAIN)


@case("OneHotEncoder")
def one_hot_encoder(r: Random) -> Case:
    """Ones at categories."""
    x = rows_of(r, 3, (np.int64, np.float32, np.float64))
    categories = sorted(set(r.rng.integers(-3, 4, r.size(1, 6)).tolist()))
    return Case([x if r.flag() else x[0]], {"cats_int64s": categories, "zeros": 1}, domain=DOMAIN)


@case("LabelEncoder")
def label_encoder(r: Random) -> Case:
    """Numbers for numbers."""
    is_float, gives_float = r.flag(), r.flag()
    x = rows_of(r, 3, (np.float32 if is_float else np.int64,))
    keys = list(dict.fromkeys((r.rng.integers(-5, 6, r.size(1, 8)) / (2 if is_float else 1)).tolist()))
    attributes: dict[str, Any] = {}
    values = r.floats(len(keys)) if gives_float else r.below(1000, len(keys))
    attributes["keys_floats" if is_float else "keys_int64s"] = keys if is_float else [int(key) for key in keys]
    attributes["values_floats" if gives_float else "values_int64s"] = values.tolist()
    if r.flag():
        attributes["default_float" if gives_float else "default_int64"] = 3.25 if gives_float else 17
    return Case([x], attributes, domain=DOMAIN, version=2)


@case("LabelEncoder.tensors")
def label_encoder_of_tensors(r: Random) -> Case:
    """Numbers for numbers, as tensors."""
    kinds = [(np.float64, np.float64), (np.int64, np.int64), (np.float32, np.float32)]
    key, value = r.choice(np.arange(len(kinds))), r.flag()
    dtype = kinds[key][0]
    x = rows_of(r, 3, (dtype,))
    keys = np.unique(rows_of(r, 4, (dtype,)))
    if dtype != np.int64:
        keys[r.size(0, len(keys) - 1)] = x[0, 0] = np.nan
    values = (r.floats(len(keys)) * 100).astype(dtype)
    attributes = {
        "keys_tensor": numpy_helper.from_array(keys),
        "values_tensor": numpy_helper.from_array(values),
        "default_tensor": numpy_helper.from_array(np.array([7 if value else -2], dtype)),
    }
    return Case([x], attributes, domain=DOMAIN, version=4)


WORDS = ["", "a", "b", "cat", "Käse", "two words"]


def words(r: Random, *shape: int) -> Array:
    """Returns strings, some of which no table has."""
    return r.choice(np.array([*WORDS, "unknown"]), shape).astype(object)


@case("LabelEncoder.strings")
def label_encoder_of_strings(r: Random) -> Case:
    """Numbers for strings, strings for numbers, strings for strings."""
    kind = str(r.choice(["to", "from", "both"]))
    numbers = r.rng.permutation(20)[: len(WORDS)].tolist()
    attributes: dict[str, Any] = {"keys_int64s": numbers} if kind == "from" else {"keys_strings": WORDS}
    attributes |= {"values_int64s": numbers} if kind == "to" else {"values_strings": [*WORDS[1:], "last"]}
    if kind != "to" and r.flag():
        attributes["default_string"] = "none"
    x = r.below(20, 3, 4) if kind == "from" else words(r, 3, 4)
    return Case([x], attributes, domain=DOMAIN, version=2)


@case("LabelEncoder.classes")
def label_encoder_of_classes(r: Random) -> Case:
    """Strings and their places in a list."""
    x = words(r, 5) if r.flag() else r.below(9, 5)
    return Case([x], {"classes_strings": WORDS}, domain=DOMAIN, version=1)


@case("CategoryMapper")
def category_mapper(r: Random) -> Case:
    """Strings and their numbers."""
    x = words(r, 2, 3) if r.flag() else r.below(9, 2, 3)
    attributes = {"cats_strings": WORDS, "cats_int64s": r.rng.permutation(9)[: len(WORDS)].tolist()}
    return Case([x], attributes, domain=DOMAIN)


@case("OneHotEncoder.strings")
def one_hot_encoder_of_strings(r: Random) -> Case:
    """Ones at categories that are strings."""
    return Case([words(r, 2, 3)], {"cats_strings": WORDS[: r.size(1, 6)], "zeros": 1}, domain=DOMAIN)


@case("ArrayFeatureExtractor.strings")
def array_feature_extractor_of_strings(r: Random) -> Case:
    """Chosen features that are strings."""
    return Case([words(r, 3, 4), r.below(4, 2)], weights=(1,), domain=DOMAIN)


@case("ArrayFeatureExtractor")
def array_feature_extractor(r: Random) -> Case:
    """Chosen features."""
    features = r.size(1, 6)
    x = rows_of(r, features)
    chosen = r.below(features, *((1, r.size(1, 4)) if r.flag() else (r.size(1, 4),)))
    return Case([x if r.size(0, 3) else x[0], chosen], weights=(1,), domain=DOMAIN)


@case("FeatureVectorizer")
def feature_vectorizer(r: Random) -> Case:
    """Inputs side by side."""
    rows = r.size(1, 4)
    sizes = [r.size(1, 4) for _ in range(r.size(1, 3))]
    dtype = r.choice(NUMBERS)
    inputs: list[Array | None] = [(r.floats(rows, size) * 4).astype(dtype) for size in sizes]
    wanted = [max(1, size + r.size(-1, 1)) for size in sizes]
    return Case(inputs, {"inputdimensions": wanted}, domain=DOMAIN)
