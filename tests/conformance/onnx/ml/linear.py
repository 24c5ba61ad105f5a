"""Linear models and support vector machines of ai.onnx.ml."""

from typing import Any

import numpy as np
from microsoft.case import Case, Random, case

from ml.trees import DOMAIN, TRANSFORMS


def features_of(r: Random, features: int, dtypes: Any = (np.float32, np.float64, np.int64, np.int32)) -> Any:
    """Returns rows, or one row."""
    shape = (features,) if r.size(0, 4) == 0 else (r.choice([1, 3, 16]), features)
    return r.floats(*shape) if len(shape) == 1 else (r.floats(*shape) * 3).astype(r.choice(dtypes))


@case("LinearRegressor")
def linear_regressor(r: Random) -> Case:
    """Products and intercepts."""
    features, targets = r.size(1, 5), r.choice([1, 1, 2, 4])
    attributes: dict[str, Any] = {"targets": targets, "coefficients": r.floats(targets * features).tolist()}
    if r.flag():
        attributes["intercepts"] = r.floats(targets).tolist()
    if targets > 1:
        attributes["post_transform"] = str(r.choice(["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"]))
    return Case([features_of(r, features, (np.float32,))], attributes, domain=DOMAIN)


@case("LinearClassifier")
def linear_classifier(r: Random) -> Case:
    """Labels and scores."""
    features, classes = r.size(1, 5), r.choice([1, 2, 3, 5])
    transforms = ["NONE", "LOGISTIC"] if classes == 1 else [t for t in TRANSFORMS if t != "PROBIT"]
    attributes = {
        "coefficients": r.floats(classes * features).tolist(),
        "intercepts": r.floats(classes).tolist(),
        "post_transform": str(r.choice(transforms)),
        "multi_class": int(r.flag()),
    } | r.labels("classlabels_ints", [3 * label - 2 for label in range(max(classes, 2))])
    return Case([features_of(r, features)], attributes, domain=DOMAIN, outputs=(True, True))


def kernel(r: Random) -> dict[str, Any]:
    """Returns a kernel's attributes."""
    kind = str(r.choice(["LINEAR", "RBF", "POLY", "SIGMOID"]))
    return {"kernel_type": kind, "kernel_params": [r.choice([0.1, 0.5]), r.choice([0.0, 0.7]), r.choice([2.0, 3.0])]}


@case("SVMRegressor")
def svm_regressor(r: Random) -> Case:
    """Sums of kernels."""
    features, vectors = r.size(1, 4), r.choice([0, 1, 6])
    attributes = kernel(r) | {
        "coefficients": r.floats(vectors or features).tolist(),
        "rho": r.floats(1).tolist(),
        "n_supports": vectors,
        "one_class": int(r.size(0, 3) == 0),
    }
    if vectors:
        attributes["support_vectors"] = r.floats(vectors * features).tolist()
    return Case([features_of(r, features, (np.float32,))], attributes, domain=DOMAIN)


def svm_classifier(r: Random, probabilities: bool) -> Case:
    """Votes of pairs of classes."""
    features, classes = r.size(1, 4), r.choice([2, 3, 4])
    per_class = [r.size(1, 3) for _ in range(classes)]
    pairs = classes * (classes - 1) // 2
    vectors = sum(per_class)
    attributes = kernel(r) | {
        "coefficients": r.floats((classes - 1) * vectors).tolist(),
        "rho": r.floats(pairs).tolist(),
        "support_vectors": r.floats(vectors * features).tolist(),
        "vectors_per_class": per_class,
        "post_transform": str(r.choice(["NONE", "NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"])),
    }
    attributes |= r.labels("classlabels_ints", [5 * label - 4 for label in range(classes)])
    if probabilities:
        attributes |= {"prob_a": (-np.abs(r.floats(pairs))).tolist(), "prob_b": r.floats(pairs).tolist()}
        attributes["post_transform"] = "NONE"
    x = features_of(r, features)
    return Case([x], attributes, domain=DOMAIN, outputs=(True, True), tolerance=1e-4)


@case("SVMClassifier")
def svm_classifier_of_scores(r: Random) -> Case:
    """Scores of pairs."""
    return svm_classifier(r, probabilities=False)


@case("SVMClassifier.probabilities")
def svm_classifier_of_probabilities(r: Random) -> Case:
    """Probabilities of classes."""
    return svm_classifier(r, probabilities=True)


@case("SVMClassifier.linear")
def svm_classifier_linear(r: Random) -> Case:
    """Scores of classes, without support vectors."""
    features, classes = r.size(1, 4), r.choice([2, 3])
    coefficients = r.floats(classes * features)
    attributes = {
        "coefficients": (np.abs(coefficients) if r.flag() else coefficients).tolist(),
        "rho": r.floats(1).tolist(),
        "kernel_params": [0.0, 0.0, 0.0],
    } | r.labels("classlabels_ints", list(range(classes)))
    return Case([features_of(r, features)], attributes, domain=DOMAIN, outputs=(True, True))
