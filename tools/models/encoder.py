#!/usr/bin/env python3
"""Writes a text encoder with random weights and dynamic sizes, in the form that exporters give to BERT's kind.

    encoder.py FILE.onnx [--layers 2] [--width 128] [--heads 4] [--words 1000]

Inputs are `input_ids` and `attention_mask`, [batch, sequence]; the result is `last_hidden_state`, [batch, sequence, width].
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper

POSITIONS = 512
MASKED = -10_000.0  # added to the scores of tokens that are not there


@dataclass
class Encoder:
    """A model that is being built, and the sizes that it has. Methods return the name of a result."""

    layers: int
    width: int
    heads: int
    words: int
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    weights: list[onnx.TensorProto] = field(default_factory=list)
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def constant(self, value: np.ndarray) -> str:
        name = f"constant{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def scalar(self, value: float) -> str:
        return self.constant(np.array(value, np.float32))

    def floats(self, *shape: int, scale: float) -> str:
        return self.constant((self.rng.standard_normal(shape) * scale).astype(np.float32))

    def op(self, kind: str, *inputs: str, name: str = "", **attributes: object) -> str:
        output = name or f"value{len(self.nodes)}"
        self.nodes.append(h.make_node(kind, inputs, [output], **attributes))
        return output

    def linear(self, x: str, columns: int, depth: int) -> str:
        product = self.op("MatMul", x, self.floats(depth, columns, scale=depth**-0.5))
        return self.op("Add", product, self.floats(columns, scale=0.02))

    def norm(self, x: str, name: str = "") -> str:
        gain, bias = self.constant(np.ones(self.width, np.float32)), self.constant(np.zeros(self.width, np.float32))
        return self.op("LayerNormalization", x, gain, bias, name=name, axis=-1, epsilon=1e-12)

    def gelu(self, x: str) -> str:
        error = self.op("Erf", self.op("Div", x, self.scalar(2**0.5)))
        return self.op("Mul", self.op("Mul", x, self.scalar(0.5)), self.op("Add", error, self.scalar(1)))

    def attend(self, x: str, mask: str) -> str:
        """[batch, sequence, width]: each token's mean of all, weighted by what query and key say."""
        split = self.constant(np.array([0, 0, self.heads, self.width // self.heads]))
        query, key, value = (
            self.op("Transpose", self.op("Reshape", self.linear(x, self.width, self.width), split), perm=order)
            for order in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])
        )
        scores = self.op("Div", self.op("MatMul", query, key), self.scalar((self.width / self.heads) ** 0.5))
        weights = self.op("Softmax", self.op("Add", scores, mask), axis=-1)
        heads = self.op("Transpose", self.op("MatMul", weights, value), perm=[0, 2, 1, 3])
        return self.linear(self.op("Reshape", heads, self.constant(np.array([0, 0, self.width]))), self.width, self.width)

    def embed(self) -> str:
        """Words, and where they are."""
        zero, one = self.constant(np.array([0])), self.constant(np.array([1]))
        length = self.op("Slice", self.op("Shape", "input_ids"), one, self.constant(np.array([2])), zero)
        positions = self.op("Slice", self.floats(POSITIONS, self.width, scale=0.1), zero, length, zero)
        words = self.op("Gather", self.floats(self.words, self.width, scale=0.5), "input_ids")
        return self.norm(self.op("Add", words, positions))

    def model(self) -> onnx.ModelProto:
        there = self.op("Cast", "attention_mask", to=T.FLOAT)
        there = self.op("Unsqueeze", there, self.constant(np.array([1, 2])))
        mask = self.op("Mul", self.op("Sub", self.scalar(1), there), self.scalar(MASKED))
        x = self.embed()
        for i in range(self.layers):
            x = self.norm(self.op("Add", x, self.attend(x, mask)))
            inner = self.gelu(self.linear(x, 4 * self.width, self.width))
            x = self.op("Add", x, self.linear(inner, self.width, 4 * self.width))
            x = self.norm(x, name="last_hidden_state" if i == self.layers - 1 else "")
        shape = ["batch", "sequence"]
        inputs = [h.make_tensor_value_info(name, T.INT64, shape) for name in ("input_ids", "attention_mask")]
        output = h.make_tensor_value_info("last_hidden_state", T.FLOAT, [*shape, self.width])
        graph = h.make_graph(self.nodes, "encoder", inputs, [output], self.weights)
        return h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    for name, default in {"layers": 2, "width": 128, "heads": 4, "words": 1000}.items():
        parser.add_argument("--" + name, type=int, default=default)
    arguments = vars(parser.parse_args())
    file = arguments.pop("file")
    onnx.save(Encoder(**arguments).model(), file)


if __name__ == "__main__":
    main()
