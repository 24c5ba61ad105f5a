"""Explanations that are made up: of graphs as large as a test wants, with names that try to break a page.

`python made_up.py 5000 12 > made_up.json` prints one of 5,000 calls in partitions of 1 to 12 nodes, for `collage report`.
"""

import json
import random
import sys
from typing import Any

OPERATORS = ["nn.conv2d", "add", "nn.relu", "nn.max_pool2d", "nn.batch_norm", "nn.dense", "sigmoid", "multiply"]
TOOLCHAINS = ["native", "dnnl", "openvino", "xnnpack", "blas"]
TYPE = "float32[1, 64, 56, 56]"
EVIL = '</script><script>document.title="broken"</script><b>&amp;"\'\u2028'


def _nodes(num_calls: int, random_: random.Random) -> list[dict[str, Any]]:
    """Returns an input, then calls of which each reads the one before it and now and then an earlier one."""
    nodes: list[dict[str, Any]] = [{"kind": "input", "name": "image", "type": [TYPE], "inputs": []}]
    for i in range(1, num_calls + 1):
        inputs = [i - 1]
        if i > 12 and random_.random() < 0.15:
            inputs.append(i - random_.randint(2, 11))
        name = EVIL if i == 3 else f"/stage_{i // 100}/block_{i // 10}/node_{i}"
        nodes.append(
            {
                "kind": "call",
                "op": OPERATORS[i % 8],
                "name": name,
                "attrs": {"axis": str(i % 4)},
                "type": [TYPE],
                "inputs": inputs,
            }
        )
    weights = {"minimum": -0.4217, "maximum": 0.5, "mean": 0.00321, "deviation": 0.06, "zeros": 0.125}
    nodes.append({"kind": "constant", "type": ["float32[64]"], "inputs": [], "bytes": 256, "weights": weights})
    nodes[1]["inputs"].append(num_calls + 1)
    return nodes


def _candidate(toolchain: int, nodes: list[int], cost: int) -> dict[str, Any]:
    return {
        "toolchain": toolchain,
        "rule": "fuse",
        "nodes": nodes,
        "inputs": ["plain"],
        "outputs": ["plain"],
        "cost": cost,
    }


def _alternative(toolchain: int, candidate: int, replaced: int, extra: float) -> dict[str, Any]:
    return {
        "scope": "same", "toolchain": toolchain, "candidates": [candidate], "replaces": [replaced],
        "own_seconds": 3 * extra, "replaced_seconds": 2 * extra, "penalty_seconds": 0.0,
        "extra_seconds": extra, "low_seconds": extra * 0.9, "high_seconds": extra * 1.1, "at_least": False,
        "conversions": [],
    }  # fmt: skip


def _cost(seconds: float, random_: random.Random) -> dict[str, Any]:
    multiply_adds = random_.choice([0, random_.randint(10_000, 10_000_000)])
    return {
        "state": "measured", "seconds": seconds, "p10": seconds * 0.98, "p50": seconds, "p90": seconds * 1.05,
        "half_width": seconds / 100, "samples": 40, "least_seconds": seconds / 3, "multiply_adds": multiply_adds,
        "bytes": random_.randint(10_000, 1_000_000), "error": 1e-7,
    }  # fmt: skip


def graph(num_calls: int, most_nodes: int, seed: int = 0) -> dict[str, Any]:
    """Returns a graph of an explanation: `num_calls` calls in partitions of 1 to `most_nodes` nodes."""
    random_ = random.Random(seed)
    nodes = _nodes(num_calls, random_)
    costs: list[dict[str, Any]] = []
    candidates: list[dict[str, Any]] = []
    partitions: list[dict[str, Any]] = []
    begin = 1
    while begin <= num_calls:
        inside = list(range(begin, min(num_calls + 1, begin + random_.randint(1, most_nodes))))
        begin = inside[-1] + 1
        number = len(partitions)
        chosen, other = random_.sample(range(len(TOOLCHAINS)), 2)
        seconds = random_.uniform(1e-6, 1e-3)
        costs += [_cost(seconds, random_), _cost(seconds * 1.5, random_)]
        candidates += [_candidate(chosen, inside, 2 * number), _candidate(other, inside, 2 * number + 1)]
        conversions = [
            {"node": inside[0] - 1, "from": "channels_last", "to": "plain", "seconds": 1e-6, "at_least": False}
        ]
        partitions.append({
            "candidate": 2 * number, "operators": "+".join(nodes[node]["op"] for node in inside),
            "first_node": nodes[inside[0]]["name"], "nodes": inside, "step": number, "kernel": number, "seconds": seconds,
            "share": None, "transition_seconds": 3e-7, "switch_seconds": 0.0,
            "conversion_seconds": 1e-6 if number % 9 == 4 else 0.0,
            "conversions": conversions if number % 9 == 4 else [],
            "alternatives": [_alternative(other, 2 * number + 1, number, seconds * 0.5)],
            "refused": [{"toolchain": other, "reason": f"declined {EVIL}"}] if number == 0 else [],
        })  # fmt: skip
    total = sum(partition["seconds"] for partition in partitions)
    for partition in partitions:
        partition["share"] = partition["seconds"] / total
    partitions[-1] |= {"seconds": None, "share": None}
    return {
        "name": "made-up.onnx", "hash": "3f9a0c", "winner": "collage", "nodes": nodes, "results": [num_calls],
        "toolchains": [{"name": name, "toolchain": name, "version": "1.0"} for name in TOOLCHAINS],
        "penalties": {"transition_seconds": 3e-7, "switches": []}, "conversions": [], "costs": costs,
        "candidates": candidates, "candidates_left_out": 4, "contenders": [],
        "partitions": partitions, "best_mix": True, "refusals": [], "covers": [], "progress": _progress(total),
    }  # fmt: skip


def _play_off(total: float, mix: dict[str, int]) -> list[dict[str, Any]]:
    rows = []
    for i, name in enumerate(["collage", "collage-2", *TOOLCHAINS]):
        p50 = total * (1 + 0.2 * i)
        rows.append({
            "name": name, "single": not name.startswith("collage"), "extra": False, "estimated_seconds": total * (1 + 0.18 * i),
            "p50_seconds": p50, "spread_seconds": p50 / 50, "to_winner": 1 + 0.2 * i, "p90_seconds": p50 * 1.02,
            "min_seconds": p50 * 0.97, "samples": 60, "max_error": 2e-7, "failure": "",
            "partitions": mix if i < 2 else {name: 1},
        })  # fmt: skip
    rows[-1] |= {"failure": f"its results differ {EVIL}", "p50_seconds": 0, "p90_seconds": 0, "min_seconds": 0}
    return rows


def _progress(total: float) -> list[dict[str, Any]]:
    return [
        {"seconds": 0.5, "measured": 3, "best_seconds": None, "least_seconds": total * 0.3},
        {"seconds": 2.0, "measured": 30, "best_seconds": total * 1.6, "least_seconds": total * 0.6},
        {"seconds": 9.0, "measured": 70, "best_seconds": total * 1.1, "least_seconds": total * 0.9},
        {"seconds": 20.0, "measured": 90, "best_seconds": total, "least_seconds": total * 0.97},
    ]


def explanation(num_calls: int, most_nodes: int, seed: int = 0) -> dict[str, Any]:
    """Returns an explanation with one graph of `num_calls` calls, in which nothing but its form is true."""
    made = graph(num_calls, most_nodes, seed)
    mix: dict[str, int] = {}
    for partition in made["partitions"]:
        name = TOOLCHAINS[made["candidates"][partition["candidate"]]["toolchain"]]
        mix[name] = mix.get(name, 0) + 1
    play_off = _play_off(sum(partition["seconds"] or 0 for partition in made["partitions"]), mix)
    winner = play_off[0]
    least = winner["p50_seconds"] * 0.97
    for row in play_off:
        rounds = {"first": [row["p50_seconds"] * 0.99, row["p50_seconds"] * 1.01]}
        made["contenders"].append({"name": row["name"], "baselines": [], "rounds": rounds})
    return {
        "format": "collage-explanation", "schema": 1, "collage": "0.1.0",
        "settings": {"threads": 2, "note": EVIL}, "model": "made-up.onnx",
        "machine": {"cpu": "a processor", "isa": "x86_64", "fingerprint": "x86-64-1", "threads": 2, "processors": 2,
                    "near_bytes": 1 << 20, "shared_bytes": 1 << 25},
        "report": {
            "schema": 1, "model": "made-up.onnx", "output": "made-up.clg", "operators": num_calls, "parameters": 2000,
            "machine": "a processor", "threads": 2, "winner": "collage", "p50_seconds": winner["p50_seconds"],
            "spread_seconds": winner["spread_seconds"], "partitions": mix, "best_baseline": "native",
            "certificate": {"exact": True, "gap": 0.03, "cover_seconds": winner["p50_seconds"], "least_seconds": least,
                            "dropped": 0, "capped": []},
            "search": {"candidates": 7, "variants": 9, "states": 12, "distinct": 7, "measured": 5, "remeasured": 0,
                       "from_database": 0, "failed": 1, "below_bound": 0, "budget_spent": False},
            "play_off": play_off,
            "seconds": {"import": 0.1, "search": 20.0, "play_off": 1.0, "write": 0.01, "total": 22.0},
            "toolchains": [{"name": name, "available": True, "takes_part": True, "version": "1.0", "license": "MIT",
                            "takes_part_as": [name]} for name in TOOLCHAINS],
        },
        "timeline": [
            {"phase": "import", "graph": None, "begin_seconds": 0.0, "end_seconds": 0.1},
            {"phase": "search", "graph": 0, "begin_seconds": 0.1, "end_seconds": 20.0},
            {"phase": "play-off", "graph": 0, "begin_seconds": 20.0, "end_seconds": 22.0},
        ],
        "memory": {"file_bytes": 409600, "weights_bytes": 8000, "code_bytes": 12000, "arena_bytes": 65536},
        "graphs": [made],
    }  # fmt: skip


def profile(explained: dict[str, Any]) -> dict[str, Any]:
    """Returns a profile of the first graph: each partition took 10 % more than its cost, on two threads."""
    steps: list[dict[str, Any]] = []
    spans: list[dict[str, Any]] = []
    begin = 0.0
    for row in explained["graphs"][0]["partitions"]:
        p50 = 1.1 * (row["seconds"] or 1e-6)
        step = len(steps)
        steps.append({
            "step": step, "kind": "kernel", "plan": "", "plan_step": step, "partition": row["kernel"], "calls": 1,
            "operators": row["operators"], "p10_seconds": 0.9 * p50, "p50_seconds": p50, "p90_seconds": 1.2 * p50,
            "cold_seconds": 2 * p50, "bound": "memory", "thread_seconds": [0.9 * p50, 0.8 * p50],
        })  # fmt: skip
        spans.append({"thread": 0, "step": step, "region": False, "begin_seconds": begin, "end_seconds": begin + p50})
        for thread in (0, 1):
            end = begin + p50 * (0.95 - 0.1 * thread)
            spans.append(
                {
                    "thread": thread,
                    "step": step,
                    "region": True,
                    "begin_seconds": begin + 0.02 * p50,
                    "end_seconds": end,
                }
            )
        begin += p50
    return {
        "schema": 1, "executable": "made-up.clg", "machine": "a processor", "threads": 2, "runs": 60,
        "seconds": {"p10": begin * 0.98, "p50": begin, "p90": begin * 1.03}, "first_run_seconds": 2 * begin,
        "cold_seconds": 1.6 * begin, "load_seconds": 0.004, "overhead": 0.012, "between_steps_seconds": 3e-7,
        "timed_seconds": {"p10": begin, "p50": begin, "p90": begin},
        "roof": {"flops_per_second": 2.2e11, "near_bytes_per_second": 2.4e11, "shared_bytes_per_second": 9e10,
                 "memory_bytes_per_second": 2.1e10},
        "memory": {"peak_bytes": 31_000_000, "resident_bytes": 29_000_000, "arena_bytes": 65536, "weight_bytes": 8000,
                   "code_bytes": 12000},
        "arenas": [{"plan": "", "memory": "host", "bytes": 65536, "used_bytes": 40960, "values": [
            {"value": i, "offset": 4096 * (i % 16), "bytes": 4096, "first_step": i, "last_step": i + 2, "type": TYPE}
            for i in range(len(steps))]}],
        "counters": [{"name": "cycles", "available": False, "reason": "perf_event_open is not permitted", "per_run": None},
                     {"name": "page_faults", "available": True, "reason": "", "per_run": 0}],
        "steps": steps, "timeline": spans,
    }  # fmt: skip


def known(value: Any) -> Any:
    """Returns a part of an explanation without what is not known, which its files leave out."""
    if isinstance(value, dict):
        return {key: known(part) for key, part in value.items() if part is not None}
    return [known(part) for part in value] if isinstance(value, list) else value


if __name__ == "__main__":
    print(json.dumps(known(explanation(int(sys.argv[1]), int(sys.argv[2])))))
