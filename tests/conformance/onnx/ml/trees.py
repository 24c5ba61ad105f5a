"""Decision trees of ai.onnx.ml, with weights whose sums are exact in any order."""

from collections.abc import Callable
from typing import Any

import numpy as np
from microsoft.case import Array, Case, Maker, Random, case
from onnx import numpy_helper

DOMAIN = "ai.onnx.ml"
MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]
TRANSFORMS = ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT"]


def grid(r: Random, *shape: int) -> Array:
    """Returns quarters around 0, so that numbers meet thresholds often and sums are exact."""
    return r.rng.integers(-6, 7, shape) / 4


class Forest:
    """Random trees, as the attributes of the older operators hold them."""

    def __init__(self, r: Random, features: int, tracks: bool) -> None:
        self.r, self.features = r, features
        self.nodes: dict[str, list[Any]] = {
            name: []
            for name in (
                "nodes_treeids nodes_nodeids nodes_featureids nodes_values nodes_modes nodes_truenodeids "
                "nodes_falsenodeids nodes_missing_value_tracks_true"
            ).split()
        }
        self.leaves: list[tuple[int, int]] = []
        self.modes = MODES if r.flag() else [r.choice(MODES)]
        self.tracks = tracks

    def add_tree(self, tree: int, depth: int) -> None:
        """Adds a tree of at most `depth` comparisons."""
        count = 0

        def add(left: int) -> int:
            nonlocal count
            node, count = count, count + 1
            is_leaf = left == 0 or (left < depth and self.r.size(0, 3) == 0)
            row = {
                "nodes_treeids": tree,
                "nodes_nodeids": node,
                "nodes_featureids": 0 if is_leaf else self.r.size(0, self.features - 1),
                "nodes_values": 0.0 if is_leaf else float(grid(self.r)),
                "nodes_modes": "LEAF" if is_leaf else str(self.r.choice(self.modes)),
                "nodes_truenodeids": 0,
                "nodes_falsenodeids": 0,
                "nodes_missing_value_tracks_true": int(not is_leaf and self.tracks and self.r.flag()),
            }
            at = len(self.nodes["nodes_treeids"])
            for name, value in row.items():
                self.nodes[name].append(value)
            if is_leaf:
                self.leaves.append((tree, node))
            else:
                self.nodes["nodes_truenodeids"][at] = add(left - 1)
                self.nodes["nodes_falsenodeids"][at] = add(left - 1)
            return node

        add(depth)

    def attributes(self) -> dict[str, Any]:
        """Returns the attributes that say how nodes hang together."""
        return {k: v for k, v in self.nodes.items() if self.tracks or not k.startswith("nodes_missing")}


def weights(r: Random, forest: Forest, classes: int, kind: str) -> tuple[list[int], list[int], list[int], list[float]]:
    """Returns trees, nodes, classes and numbers: of all classes per leaf, of one per tree, or of some."""
    rows = []
    for tree, node in forest.leaves:
        if kind == "all":
            own = list(range(classes))
        elif kind == "one":
            own = [tree % classes]
        elif kind == "first":
            own = [0]
        else:
            own = sorted(set(r.below(classes, r.size(1, classes)).tolist()))
        rows += [(tree, node, c, float(grid(r))) for c in own]
    trees, nodes, ids, numbers = (list(column) for column in zip(*rows, strict=True))
    return trees, nodes, ids, numbers


def rows_of(r: Random, features: int, dtype: Any = np.float32) -> Array:
    """Returns rows with numbers at thresholds, and some that are none."""
    x = grid(r, r.choice([1, 2, 5, 17]), features).astype(dtype)
    if r.flag():
        x[r.rng.random(x.shape) < 0.2] = np.nan
    return x


def random_forest(r: Random) -> Forest:
    """Returns one to six trees."""
    forest = Forest(r, r.size(1, 4), r.flag())
    for tree in range(r.size(1, 6)):
        forest.add_tree(tree, r.size(0, 5) if r.size(0, 5) == 0 else r.size(1, 5))
    return forest


def several(name: str) -> Callable[[Maker], Maker]:
    """Registers what makes more cases than those of other operators."""

    def register(maker: Maker) -> Maker:
        for i in range(5):
            case(f"{name}.{i}")(maker)
        return maker

    return register


@several("TreeEnsembleRegressor")
def tree_ensemble_regressor(r: Random) -> Case:
    """Sums, means and bounds of what trees say."""
    forest, targets = random_forest(r), r.choice([1, 1, 2, 4])
    kind = r.choice(["all", "one", "some"]) if targets > 1 else "all"
    trees, nodes, ids, numbers = weights(r, forest, targets, kind)
    attributes = forest.attributes() | {
        "n_targets": targets,
        "target_treeids": trees,
        "target_nodeids": nodes,
        "target_ids": ids,
        "target_weights": numbers,
        "aggregate_function": str(r.choice(["SUM", "AVERAGE", "MIN", "MAX"])),
        "post_transform": str(r.choice(TRANSFORMS)) if r.flag() else "NONE",
    }
    # ONNX Runtime leaves the base out where no leaf has a vote.
    if r.flag() and kind != "some" and set(ids) == set(range(targets)):
        attributes["base_values"] = grid(r, targets).tolist()
    return Case([rows_of(r, forest.features)], attributes, domain=DOMAIN, version=3, tolerance=2e-6)


@several("TreeEnsembleClassifier")
def tree_ensemble_classifier(r: Random) -> Case:
    """Labels and scores of two classes or more."""
    forest, classes = random_forest(r), r.choice([2, 2, 3, 5])
    kind = str(r.choice(["all", "one", "some", "first"]))
    trees, nodes, ids, numbers = weights(r, forest, classes, kind)
    if r.flag():
        numbers = [abs(number) for number in numbers]
    attributes = forest.attributes() | {
        "class_treeids": trees,
        "class_nodeids": nodes,
        "class_ids": ids,
        "class_weights": numbers,
        "post_transform": str(r.choice(TRANSFORMS[:4])) if r.flag() else "NONE",
    }
    # ONNX Runtime calls two classes 0 and 1 if both have votes.
    numbers_of_classes = [0, 1] if classes == 2 and kind != "first" else [7 * c - 3 for c in range(classes)]
    attributes |= r.labels("classlabels_int64s", numbers_of_classes)
    if r.flag() and (kind == "all" or (kind == "first" and classes == 2)):
        attributes["base_values"] = grid(r, classes if kind == "all" else 1).tolist()
    return Case(
        [rows_of(r, forest.features)], attributes, domain=DOMAIN, version=3, outputs=(True, True), tolerance=2e-6
    )


def holds(mode: int, x: float, split: float, members: list[float]) -> bool:
    """Whether a node's comparison holds."""
    tests = [x <= split, x < split, x >= split, x > split, x == split, x != split, x in members]
    return bool(tests[mode])


def transformed(scores: Array, transform: int) -> Array:
    """The scores [N, C] as attribute post_transform says."""
    if transform == 0:
        return scores
    if transform == 2:
        return 1 / (1 + np.exp(-scores))
    power = np.exp(scores - scores.max(axis=1, keepdims=True))
    if transform == 3:
        power = np.where(scores == 0, 0, power)
    return power / power.sum(axis=1, keepdims=True)


def compact_scores(x: Array, attributes: Any, nodes: Any, tests: Any, leaves: Any) -> Array:
    """Returns the results by the operator's definition: ONNX Runtime has sets of small integers only."""
    modes, splits, members = tests
    sets: list[list[float]] = [[]]
    for value in members:
        if np.isnan(value):
            sets.append([])
        else:
            sets[-1].append(value)
    numbers = np.cumsum([mode == 6 for mode in modes]) - 1
    how = {1: np.sum, 2: np.min, 3: np.max}[attributes["aggregate_function"]]
    scores = np.zeros((len(x), attributes["n_targets"]))
    for i, row in enumerate(x):
        votes: list[list[float]] = [[] for _ in scores[i]]
        for root in attributes["tree_roots"]:
            at, is_leaf = root, False
            while not is_leaf:
                value = row[nodes["nodes_featureids"][at]]
                is_true = holds(modes[at], value, splits[at], sets[numbers[at]])
                is_true |= bool(np.isnan(value) and nodes["nodes_missing_value_tracks_true"][at])
                side = "true" if is_true else "false"
                at, is_leaf = nodes[f"nodes_{side}nodeids"][at], nodes[f"nodes_{side}leafs"][at]
            votes[leaves[0][at]].append(leaves[1][at])
        scores[i] = [how(own) if own else 0 for own in votes]
    with np.errstate(invalid="ignore"):
        return transformed(scores, attributes["post_transform"]).astype(x.dtype)


@several("TreeEnsemble")
def tree_ensemble(r: Random) -> Case:
    """The operator of version 5, whose nodes may test membership of sets."""
    dtype = r.choice([np.float32, np.float64])
    features, targets = r.size(1, 4), r.choice([1, 3])
    nodes: dict[str, list[Any]] = {
        name: []
        for name in (
            "nodes_featureids nodes_truenodeids nodes_trueleafs nodes_falsenodeids nodes_falseleafs "
            "nodes_missing_value_tracks_true"
        ).split()
    }
    modes, splits, members, leaf_targets, leaf_weights = [], [], [], [], []

    def leaf() -> int:
        leaf_targets.append(r.size(0, targets - 1))
        leaf_weights.append(float(grid(r)))
        return len(leaf_targets) - 1

    def add(depth: int) -> int:
        at = len(modes)
        modes.append(r.size(0, 6))
        splits.append(float(grid(r)))
        nodes["nodes_featureids"].append(r.size(0, features - 1))
        nodes["nodes_missing_value_tracks_true"].append(int(r.flag()))
        if modes[at] == 6:
            members.extend([*set(grid(r, r.size(1, 5)).tolist()), np.nan])
        for side in ("true", "false"):
            nodes[f"nodes_{side}nodeids"].append(0)
            nodes[f"nodes_{side}leafs"].append(0)
        for side in ("true", "false"):
            is_leaf = depth == 1 or r.size(0, 3) == 0
            nodes[f"nodes_{side}leafs"][at] = int(is_leaf)
            nodes[f"nodes_{side}nodeids"][at] = leaf() if is_leaf else add(depth - 1)
        return at

    roots = [add(r.size(1, 5)) for _ in range(r.size(1, 5))]
    attributes: dict[str, Any] = dict(nodes) | {
        "n_targets": targets,
        "tree_roots": roots,
        "nodes_modes": numpy_helper.from_array(np.array(modes, np.uint8)),
        "nodes_splits": numpy_helper.from_array(np.array(splits, dtype)),
        "leaf_targetids": leaf_targets,
        "leaf_weights": numpy_helper.from_array(np.array(leaf_weights, dtype)),
        "aggregate_function": r.choice([1, 1, 2, 3]),
        "post_transform": r.choice([0, 0, 1, 2, 3]),
    }
    if members:
        attributes["membership_values"] = numpy_helper.from_array(np.array(members, dtype))
    x = rows_of(r, features, dtype)
    results = [compact_scores(x, attributes, nodes, (modes, splits, members), (leaf_targets, leaf_weights))]
    return Case([x], attributes, domain=DOMAIN, version=5, tolerance=2e-6, results=results)
