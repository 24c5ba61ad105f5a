"""Models of tables that people train with scikit-learn, LightGBM and XGBoost, as their converters write them.

export_tabular.py trains them on random rows and writes the files; only it needs these libraries.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import onnx

from model_check import Model

FEATURES = 6
WORDS = ("red", "green", "blue", "a word of no table")


@dataclass(frozen=True)
class Tabular:
    """`make` is an expression in which the libraries' classes have their names. `task` says what it is trained for: "classes"
    (numbers and, once more, strings), "number", "features" (none), "mixed" (strings and numbers), "words" or "texts"."""

    name: str
    make: str
    task: str
    library: str = "scikit-learn"


CLASSIFIERS = {
    "logistic_regression": "LogisticRegression()",
    "random_forest": "RandomForestClassifier(10, max_depth=5)",
    "gradient_boosting": "GradientBoostingClassifier(n_estimators=10)",
    "extra_trees": "ExtraTreesClassifier(10, max_depth=5)",
    "decision_tree": "DecisionTreeClassifier(max_depth=4)",
    "ada_boost": "AdaBoostClassifier(n_estimators=5)",
    "bagging": "BaggingClassifier(n_estimators=3)",
    "svc": "SVC(probability=True)",
    "linear_svc": "LinearSVC()",
    "sgd": "SGDClassifier(loss='log_loss')",
    "ridge": "RidgeClassifier()",
    "perceptron": "Perceptron()",
    "naive_bayes": "GaussianNB()",
    "k_neighbors": "KNeighborsClassifier(5)",
    "mlp": "MLPClassifier((16,), max_iter=50)",
    "lda": "LinearDiscriminantAnalysis()",
    "qda": "QuadraticDiscriminantAnalysis()",
    "one_vs_rest": "OneVsRestClassifier(LogisticRegression())",
    "calibrated": "CalibratedClassifierCV(LinearSVC(), cv=2)",
    "stacking": "StackingClassifier([('a', LogisticRegression()), ('b', GaussianNB())], cv=2)",
}
REGRESSORS = {
    "linear_regression": "LinearRegression()",
    "random_forest_regressor": "RandomForestRegressor(10, max_depth=5)",
    "gradient_boosting_regressor": "GradientBoostingRegressor(n_estimators=10)",
    "ada_boost_regressor": "AdaBoostRegressor(n_estimators=5)",
    "svr": "SVR()",
    "k_neighbors_regressor": "KNeighborsRegressor(5)",
    "mlp_regressor": "MLPRegressor(hidden_layer_sizes=(16,), max_iter=50)",
    "gaussian_process": "GaussianProcessRegressor()",
    "poisson": "PoissonRegressor()",
    "huber": "HuberRegressor()",
    "voting": "VotingRegressor([('a', LinearRegression()), ('b', Ridge())])",
}
TRANSFORMERS = {
    "k_means": "KMeans(3, n_init=2)",
    "pca": "PCA(3)",
    "kernel_pca": "KernelPCA(3, kernel='rbf')",
    "truncated_svd": "TruncatedSVD(3)",
    "gaussian_mixture": "GaussianMixture(3)",
    "local_outlier_factor": "LocalOutlierFactor(novelty=True)",
    "one_class_svm": "OneClassSVM()",
    "standard_scaler": "StandardScaler()",
    "min_max_scaler": "MinMaxScaler()",
    "robust_scaler": "RobustScaler()",
    "polynomial_features": "PolynomialFeatures(2)",
    "bins": "KBinsDiscretizer(4, encode='ordinal')",
    "power": "PowerTransformer()",
    "quantiles": "QuantileTransformer(n_quantiles=20)",
    "normalizer": "Normalizer()",
    "imputer": "SimpleImputer()",
}
OF_WORDS = {
    "ordinal_encoder": "OrdinalEncoder(handle_unknown='use_encoded_value', unknown_value=-1)",
    "one_hot_encoder": "OneHotEncoder(handle_unknown='ignore')",
    "label_binarizer": "LabelBinarizer()",
}
MIXED = "make_column_transformer((StandardScaler(), ['a', 'b']), (OneHotEncoder(handle_unknown='ignore'), ['c']))"
TABULAR = (
    *(Tabular(name, make, "classes") for name, make in CLASSIFIERS.items()),
    *(Tabular(name, make, "number") for name, make in REGRESSORS.items()),
    *(Tabular(name, make, "features") for name, make in TRANSFORMERS.items()),
    *(Tabular(name, make, "words") for name, make in OF_WORDS.items()),
    Tabular("columns_and_regression", f"make_pipeline({MIXED}, LogisticRegression())", "mixed"),
    Tabular("columns_and_forest", f"make_pipeline({MIXED}, RandomForestClassifier(5, max_depth=4))", "mixed"),
    Tabular("lightgbm", "LGBMClassifier(n_estimators=5, verbose=-1)", "classes", "LightGBM"),
    Tabular("lightgbm_regressor", "LGBMRegressor(n_estimators=5, verbose=-1)", "number", "LightGBM"),
    Tabular("xgboost", "XGBClassifier(n_estimators=5)", "classes", "XGBoost"),
    Tabular("xgboost_regressor", "XGBRegressor(n_estimators=5)", "number", "XGBoost"),
)


def files_of(row: Tabular, folder: Path) -> list[Path]:
    """The files of a model: with classes that are numbers, and, by scikit-learn, with others that are strings."""
    has_both = row.task == "classes" and row.library == "scikit-learn"
    return [folder / f"{row.name}{ending}.onnx" for ending in (("", ".strings") if has_both else ("",))]


def models(folder: Path) -> list[Model]:
    """All that have been exported, with one row, and with some."""
    found = []
    for row in TABULAR:
        for path in files_of(row, folder):
            if not path.exists():
                continue
            inputs = onnx.load(path).graph.input
            rows = [(value.type.tensor_type.shape.dim[0].dim_param or f"{value.name}[0]") for value in inputs]
            sizes = tuple(dict.fromkeys(rows, count) for count in (17, 1, 5))
            ranges = {value.name: (-2.0, 2.0) for value in inputs}
            found.append(Model(path.stem, row.library, path, sizes, ranges, words=WORDS))
    return found
