"""Targets and costs of `collage partition` in short lines, in place of JSON (docs/inspection.md has what they become).

    // TARGET: llvm fuse max_depth=4
    // TARGET: ext external patterns max_depth=3 relu=nn.relu(*); add=add(*, *)
    // TARGET: mine {"rule": "OpCallByKind"}
    // COST: llvm=2us ext=1us ext.nn.relu=0.5us benefit=0.9 transition=1us coalesce
    // COST: ext{3,4}=7us llvm{5}=invalid
    // COST: ext/tanh                                  does not support it

`fuse` groups operators as pass FuseOps does, `patterns` are Composites, any that touch joined, both up to `max_depth`
operators deep. `ext` is what every operator costs on that target, `ext.OP` what one does, `ext{NODES}` what a candidate
of exactly these nodes does.
"""

from __future__ import annotations

import json
import re
from typing import Any

Json = dict[str, Any]

_TARGET = re.compile(r"^(\w+)( external)? (?:(\{.*\})|(fuse|patterns) max_depth=(\d+)(?: (.*))?)$")
_COST = re.compile(r"(\w+)(?:\.([\w.]+))?(?:\{([\d,]+)\})?=(\d+(?:\.\d+)?|invalid|unknown)(?:us)?$")
_UNSUPPORTED = re.compile(r"(\w+)/([\w.]+)$")
_NAMES = {"benefit": "fusion_benefit", "transition": "transition_penalty", "conversion": "conversion"}


def _combined(max_depth: int, combiners: list[Json], sub_rule: Json) -> Json:
    combine = {"rule": "Combine", "max_depth": max_depth, "combiner_rules": combiners, "sub_rule": sub_rule}
    return {"rule": "OnlyValid", "config": {"max_exits": 1, "max_depth": max_depth}, "sub_rule": combine}


def _fuse(max_depth: int) -> Json:
    simple = {"combiner": "AllSimple", "kinds": ["A->B", "B->R", "I->I"]}
    return _combined(max_depth, [simple, {"combiner": "TupleArg"}, {"combiner": "TupleProj"}], {"rule": "OpCallByKind"})


def _patterns(max_depth: int, text: str) -> Json:
    composites = []
    for one in text.split(";"):
        name, pattern = one.split("=", 1)
        matches = {"rule": "DFPattern", "pattern": pattern.strip()}
        composites.append({"rule": "Composite", "name": name.strip(), "sub_rule": matches})
    union = {"rule": "Union", "sub_rules": composites}
    return _combined(max_depth, [{"combiner": "AllSimple", "kinds": ["A->A"]}], union)


def targets(lines: list[str]) -> list[Json | str]:
    """Returns the targets that `// TARGET:` lines describe. Raises ValueError for a line that it cannot read."""
    result: list[Json | str] = []
    for line in lines:
        if line.startswith(("llvm -", "cuda")):
            result.append(line)
            continue
        found = _TARGET.match(line)
        if not found:
            raise ValueError(f"cannot read target '{line}'")
        name, is_external, rule, kind, depth, text = found.groups()
        if rule:
            sub_rule = json.loads(rule)
        elif kind == "fuse":
            sub_rule = _fuse(int(depth))
        else:
            sub_rule = {"rule": "Primitive", "sub_rule": _patterns(int(depth), text)}
        result.append({"name": name, "external": bool(is_external), "rule": sub_rule})
    return result


def costs(lines: list[str]) -> Json:
    """Returns the table that `// COST:` lines describe. Raises ValueError for a word that it cannot read."""
    table: Json = {"op_cost": {}, "overrides": [], "unsupported": {}}
    for word in " ".join(lines).split():
        if word == "coalesce":
            table["coalesce"] = True
        elif found := _UNSUPPORTED.match(word):
            table["unsupported"].setdefault(found.group(1), []).append(found.group(2))
        elif found := _COST.match(word):
            target, operator, nodes, text = found.groups()
            cost = float(text) if text[0].isdigit() else text
            if target in _NAMES:
                table[_NAMES[target]] = cost
            elif nodes:
                inside = [int(node) for node in nodes.split(",")]
                table["overrides"].append({"target": target, "inside": inside, "cost": cost})
            else:
                table["op_cost"].setdefault(target, {})[operator or "*"] = cost
        else:
            raise ValueError(f"cannot read cost '{word}'")
    return table


def summary(report: Json) -> list[str]:
    """Returns the lines that describe a report of `collage partition --json`."""
    text = f"cost {report['cost']:.10g}us" if report["cost"] is not None else "cost unknown"
    if report.get("next_best_cost") is not None:
        text += f", next best {report['next_best_cost']:.10g}us"
    chosen = [f"{one['target']}[{' '.join(one['ops'])}]" for one in report["partitions"]]
    return [f"// {text}", f"// {' '.join(chosen)}"]
