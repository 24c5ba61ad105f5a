"""tiny_decoder.py FILE: a text model of one layer, written as ONNX Runtime's generative tools write them.

Weights have 4 bits in blocks; keys and values of earlier tokens are inputs, and results that hold the new ones too.
"""

import sys

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper as nh

WORDS, WIDTH, HEADS, SIZE = 100, 64, 2, 32

rng = np.random.default_rng(1)
nodes: list[onnx.NodeProto] = []
weights: list[onnx.TensorProto] = []


def constant(name: str, value: np.ndarray) -> str:
    weights.append(nh.from_array(value, name))
    return name


def product(x: str, name: str, columns: int, result: str) -> None:
    numbers = constant(name, rng.integers(0, 256, (columns, WIDTH // 32, 16), dtype=np.uint8))
    scales = constant(name + "_scales", rng.uniform(0.01, 0.05, (columns, WIDTH // 32)).astype(np.float32))
    nodes.append(
        h.make_node(
            "MatMulNBits",
            [x, numbers, scales],
            [result],
            domain="com.microsoft",
            K=WIDTH,
            N=columns,
            bits=4,
            block_size=32,
        )
    )


words = constant("words", rng.standard_normal((WORDS, WIDTH)).astype(np.float32))
nodes += [
    h.make_node("Gather", [words, "input_ids"], ["x"]),
    h.make_node("ReduceSum", ["attention_mask", constant("axis", np.array([1]))], ["count"]),
    h.make_node("Sub", ["count", constant("one", np.array([1]))], ["last"]),
    h.make_node("Cast", ["last"], ["seqlens_k"], to=T.INT32),
    h.make_node("Shape", ["attention_mask"], ["mask_shape"]),
    h.make_node("Gather", ["mask_shape", constant("second", np.array(1))], ["length"]),
    h.make_node("Cast", ["length"], ["total"], to=T.INT32),
]
product("x", "qkv", 3 * WIDTH, "packed")
pasts = ["past_key_values.0.key", "past_key_values.0.value"]
presents = ["present.0.key", "present.0.value"]
nodes.append(
    h.make_node(
        "GroupQueryAttention",
        ["packed", "", "", *pasts, "seqlens_k", "total"],
        ["attention", *presents],
        domain="com.microsoft",
        num_heads=HEADS,
        kv_num_heads=HEADS,
    )
)
product("attention", "head", WORDS, "logits")


def tensor(name: str, dtype: int, *shape: int | str) -> onnx.ValueInfoProto:
    return h.make_tensor_value_info(name, dtype, shape)


graph = h.make_graph(
    nodes,
    "decoder",
    [
        tensor("input_ids", T.INT64, "batch", "sequence"),
        tensor("attention_mask", T.INT64, "batch", "total"),
        *(tensor(name, T.FLOAT, "batch", HEADS, "past", SIZE) for name in pasts),
    ],
    [
        tensor("logits", T.FLOAT, "batch", "sequence", WORDS),
        *(tensor(name, T.FLOAT, "batch", HEADS, "total", SIZE) for name in presents),
    ],
    weights,
)
opsets = [h.make_opsetid("", 17), h.make_opsetid("com.microsoft", 1)]
onnx.save(h.make_model(graph, opset_imports=opsets, ir_version=8), sys.argv[1])
