#!/usr/bin/env python3
"""Writes a text model with random weights, in the form that ONNX Runtime's generative tools give to Llama's and Qwen's kind.

    decoder.py FILE.onnx [--layers 24] [--width 896] [--heads 14] [--key-heads 2] [--inner 4864] [--words 32000]
                         [--bits 4] [--block 32]

The defaults are the shape of Qwen2 0.5B with a smaller vocabulary. Keys and values of earlier tokens are inputs, `past_key_values…`
and results that hold the new ones too, `present…`. Weights have 2, 4 or 8 bits in blocks, or are float32 for `--bits 32`.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper

MICROSOFT = "com.microsoft"
POSITIONS = 4096
PROTOBUF_LIMIT = 1 << 31


@dataclass
class Decoder:
    """A model that is being built, and the sizes that it has."""

    layers: int
    width: int
    heads: int
    key_heads: int
    inner: int
    words: int
    bits: int
    block: int
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    weights: list[onnx.TensorProto] = field(default_factory=list)
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    @property
    def size(self) -> int:
        """The size of a head."""
        return self.width // self.heads

    def constant(self, name: str, value: np.ndarray) -> str:
        self.weights.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def floats(self, name: str, *shape: int, scale: float = 1.0) -> str:
        return self.constant(name, (self.rng.standard_normal(shape) * scale).astype(np.float32))

    def add(self, op: str, inputs: list[str], *outputs: str, **attributes: object) -> str:
        self.nodes.append(h.make_node(op, inputs, outputs, **attributes))
        return outputs[0]

    def product(self, x: str, name: str, depth: int, columns: int) -> str:
        """x times weights whose results have about the variance of x."""
        scale = 1 / np.sqrt(depth)
        if self.bits == 32:
            return self.add("MatMul", [x, self.floats(name + ".weight", depth, columns, scale=scale)], name)
        blocks = -(-depth // self.block)
        # Numbers whose mean is the zero point: others would give all results one large part in common.
        numbers = self.rng.integers(1, 1 << self.bits, (columns, blocks, self.block), dtype=np.uint8)
        places = np.arange(8 // self.bits, dtype=np.uint8) * self.bits
        packed = np.bitwise_or.reduce(numbers.reshape(columns, blocks, -1, len(places)) << places, axis=-1)
        step = scale * np.sqrt(12) / 2**self.bits
        steps = (step * self.rng.uniform(0.8, 1.2, columns * blocks)).astype(np.float16).astype(np.float32)
        inputs = [x, self.constant(name + ".packed", packed), self.constant(name + ".scales", steps)]
        sizes = {"K": depth, "N": columns, "bits": self.bits, "block_size": self.block}
        return self.add("MatMulNBits", inputs, name, domain=MICROSOFT, **sizes)

    def norm(self, x: str, residual: str, name: str) -> tuple[str, str]:
        """The norm of x and what it is added to, and that sum."""
        gain = self.constant(name + ".gain", np.ones(self.width, np.float32))
        outputs = [name, "", "", name + ".sum"]
        self.add("SkipSimplifiedLayerNormalization", [x, residual, gain], *outputs, domain=MICROSOFT, epsilon=1e-6)
        return name, name + ".sum"

    def lengths(self) -> None:
        """Tokens so far less one, and the length of the mask."""
        one = self.constant("one", np.array([1]))
        last = self.add("Sub", [self.add("ReduceSum", ["attention_mask", one], "count"), one], "last")
        self.add("Cast", [last], "seqlens_k", to=T.INT32)
        shape = self.add("Shape", ["attention_mask"], "mask_shape")
        self.add(
            "Cast", [self.add("Gather", [shape, self.constant("second", np.array(1))], "length")], "total", to=T.INT32
        )

    def angles(self) -> tuple[str, str]:
        frequencies = 1 / 10000 ** (np.arange(0, self.size, 2) / self.size)
        angles = np.outer(np.arange(POSITIONS), frequencies)
        return (
            self.constant("cosines", np.cos(angles).astype(np.float32)),
            self.constant("sines", np.sin(angles).astype(np.float32)),
        )

    def layer(self, i: int, x: str, residual: str, angles: tuple[str, str]) -> tuple[str, str]:
        at = f"layers.{i}."
        columns = self.width + 2 * self.key_heads * self.size
        bias = self.floats(at + "qkv.bias", columns, scale=0.1)
        packed = self.add("Add", [self.product(x, at + "qkv", self.width, columns), bias], at + "packed")
        attended = self.add(
            "GroupQueryAttention",
            [packed, "", "", *past_names(i), "seqlens_k", "total", *angles],
            at + "attention",
            *present_names(i),
            domain=MICROSOFT,
            num_heads=self.heads,
            kv_num_heads=self.key_heads,
            do_rotary=1,
        )
        x, residual = self.norm(self.product(attended, at + "out", self.width, self.width), residual, at + "norm1")
        gate, up = (self.product(x, at + name, self.width, self.inner) for name in ("gate", "up"))
        silu = self.add("Mul", [gate, self.add("Sigmoid", [gate], at + "sigmoid")], at + "silu")
        inner = self.add("Mul", [silu, up], at + "inner")
        return self.norm(self.product(inner, at + "down", self.inner, self.width), residual, at + "norm2")

    def model(self) -> onnx.ModelProto:
        self.lengths()
        residual = self.add(
            "Gather", [self.floats("words", self.words, self.width, scale=0.5), "input_ids"], "embedded"
        )
        gain = self.constant("norm0.gain", np.ones(self.width, np.float32))
        x = self.add("SimplifiedLayerNormalization", [residual, gain], "norm0", axis=-1, epsilon=1e-6)
        angles = self.angles()
        for i in range(self.layers):
            x, residual = self.layer(i, x, residual, angles)
        self.product(x, "logits", self.width, self.words)

        def caches(names, length: str) -> list[onnx.ValueInfoProto]:
            shape = ["batch_size", self.key_heads, length, self.size]
            return [h.make_tensor_value_info(n, T.FLOAT, shape) for i in range(self.layers) for n in names(i)]

        inputs = [
            h.make_tensor_value_info("input_ids", T.INT64, ["batch_size", "sequence_length"]),
            h.make_tensor_value_info("attention_mask", T.INT64, ["batch_size", "total_sequence_length"]),
            *caches(past_names, "past_sequence_length"),
        ]
        logits = h.make_tensor_value_info("logits", T.FLOAT, ["batch_size", "sequence_length", self.words])
        outputs = [logits, *caches(present_names, "total_sequence_length")]
        graph = h.make_graph(self.nodes, "decoder", inputs, outputs, self.weights)
        opsets = [h.make_opsetid("", 17), h.make_opsetid(MICROSOFT, 1)]
        return h.make_model(graph, opset_imports=opsets, ir_version=8)


def past_names(layer: int) -> list[str]:
    return [f"past_key_values.{layer}.{part}" for part in ("key", "value")]


def present_names(layer: int) -> list[str]:
    return [f"present.{layer}.{part}" for part in ("key", "value")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    sizes = {
        "layers": 24,
        "width": 896,
        "heads": 14,
        "key-heads": 2,
        "inner": 4864,
        "words": 32000,
        "bits": 4,
        "block": 32,
    }
    for name, default in sizes.items():
        parser.add_argument("--" + name, type=int, default=default)
    arguments = vars(parser.parse_args())
    file = arguments.pop("file")
    decoder = Decoder(**arguments)
    model = decoder.model()
    onnx.save(model, file, save_as_external_data=sum(t.ByteSize() for t in decoder.weights) > PROTOBUF_LIMIT * 0.9)


if __name__ == "__main__":
    main()
