"""Models with dynamic sizes as people export them, at their published shapes: their inputs, which sizes are named when
they are compiled, and at which others they are tried.

Weights are random, and some models have fewer of their equal layers (`layers`), so that files stay small.
export_open_models.py writes the files; only it needs PyTorch.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

Sizes = dict[str, int]


@dataclass(frozen=True)
class Input:
    """Sizes are numbers, names of dynamic dimensions, or sums of two such names. Integers 0 to `largest` if that is given."""

    name: str
    shape: tuple[int | str, ...]
    largest: int | None = None

    def at(self, sizes: Sizes) -> list[int]:
        """Returns the shape with the sizes of dynamic dimensions."""

        def number(size: int | str) -> int:
            return size if isinstance(size, int) else sum(sizes[name.strip()] for name in size.split("+"))

        return [number(size) for size in self.shape]


@dataclass(frozen=True)
class OpenModel:
    """`layers` of `of` equal layers are there. The first of `named` sizes are small, the last ones large; `others` are not
    known to the compiler, which `ranges` tell the least and the largest size of dimensions."""

    name: str
    inputs: tuple[Input, ...]
    named: tuple[Sizes, ...]
    others: tuple[Sizes, ...]
    layers: int = 0
    of: int = 0
    ranges: tuple[tuple[str, int, int], ...] = ()

    def file(self, folder: Path) -> Path:
        return folder / "open" / f"{self.name}.onnx"

    def title(self) -> str:
        """Returns the name, with the number of layers if there are fewer than published."""
        return self.name if self.layers == self.of else f"{self.name}, {self.layers} of {self.of} layers"

    def dimensions(self) -> list[str]:
        """Returns the names of dynamic dimensions in their order."""
        names = [size for given in self.inputs for size in given.shape if isinstance(size, str) and "+" not in size]
        return list(dict.fromkeys(names))


def combine(names: str, *rows: tuple[int, ...]) -> tuple[Sizes, ...]:
    """Returns rows of sizes by the names of their dimensions."""
    return tuple(dict(zip(names.split(), row, strict=True)) for row in rows)


TEXT = "batch sequence"
IDS = Input("input_ids", ("batch", "sequence"), 30_000)
MASK = Input("attention_mask", ("batch", "sequence"), 1)
TYPES = Input("token_type_ids", ("batch", "sequence"), 1)
TEXT_OTHERS = combine(TEXT, (1, 37), (1, 200), (4, 50), (1, 1), (1, 9), (2, 16), (3, 7), (8, 64))


def of_pasts(layers: int, heads: int, width: int) -> tuple[Input, ...]:
    """Keys and values that earlier runs left."""
    return tuple(
        Input(f"past_key_values.{layer}.{kind}", ("batch", heads, "past", width))
        for layer in range(layers)
        for kind in ("key", "value")
    )


GPT2_LAYERS = 4
MODELS = (
    OpenModel("minilm", (IDS, MASK, TYPES), combine(TEXT, (1, 16), (1, 128)), TEXT_OTHERS, 6, 6),
    OpenModel("bert_base", (IDS, MASK, TYPES), combine(TEXT, (1, 16), (1, 128)), TEXT_OTHERS, 4, 12),
    OpenModel(
        "gpt2",
        (
            Input("input_ids", ("batch", "sequence"), 50_000),
            Input("attention_mask", ("batch", "past + sequence"), 1),
            *of_pasts(GPT2_LAYERS, 12, 64),
        ),
        combine("batch sequence past", (1, 1, 64), (1, 1, 255)),
        combine(
            "batch sequence past",
            *((1, 1, 65), (1, 64, 0), (1, 1, 200), (1, 1, 1), (2, 1, 33), (1, 5, 40), (1, 16, 16), (3, 2, 7)),
        ),
        GPT2_LAYERS,
        12,
    ),
    OpenModel("t5_encoder", (IDS, MASK), combine(TEXT, (1, 16), (1, 128)), TEXT_OTHERS, 6, 6),
    OpenModel(
        "t5_decoder",
        (
            Input("input_ids", ("batch", "target"), 30_000),
            Input("encoder_hidden_states", ("batch", "source", 512)),
            Input("encoder_attention_mask", ("batch", "source"), 1),
        ),
        combine("batch target source", (1, 8, 32), (1, 32, 128)),
        combine(
            "batch target source",
            *((1, 20, 50), (1, 1, 128), (2, 8, 32), (1, 1, 1), (1, 3, 77), (3, 5, 9), (1, 64, 16), (4, 2, 40)),
        ),
        6,
        6,
    ),
    OpenModel(
        "whisper_encoder",
        (Input("input_features", ("batch", 80, 3000)),),
        combine("batch", (1,), (2,)),
        combine("batch", *((n,) for n in (3, 4, 5, 6, 7, 8, 9, 10))),
        4,
        4,
    ),
    OpenModel(
        "whisper_decoder",
        (
            Input("input_ids", ("batch", "tokens"), 50_000),
            Input("encoder_hidden_states", ("batch", 1500, 384)),
        ),
        combine("batch tokens", (1, 4), (1, 32)),
        combine("batch tokens", *((1, 20), (1, 1), (2, 4), (1, 64), (1, 7), (3, 3), (1, 100), (2, 9))),
        4,
        4,
    ),
    OpenModel(
        "wav2vec2_base",
        (Input("input_values", ("batch", "samples")),),
        combine("batch samples", (1, 16_000), (1, 48_000)),
        combine(
            "batch samples",
            *((1, 20_000), (1, 33_333), (2, 16_000), (1, 8_000), (1, 400), (3, 5_000), (1, 64_001), (2, 12_345)),
        ),
        4,
        12,
        (("samples", 400, 64_001),),  # the divisions by which it computes lengths are exact formulas from 400 on
    ),
    OpenModel(
        "vit_base",
        (Input("pixel_values", ("batch", 3, 224, 224)),),
        combine("batch", (1,), (4,)),
        combine("batch", *((n,) for n in (2, 3, 5, 6, 7, 8, 9, 12))),
        4,
        12,
    ),
    OpenModel(
        "ocr_detector",
        (Input("x", ("batch", 3, "height", "width")),),
        combine("batch height width", (1, 320, 320), (1, 640, 640)),
        combine(
            "batch height width",
            *((1, 480, 640), (1, 352, 608), (2, 320, 320), (1, 32, 32), (1, 64, 96), (1, 736, 416), (3, 96, 64)),
            (1, 960, 544),
        ),
    ),
)


def find(name: str) -> OpenModel:
    """Returns the model of that name. Raises KeyError."""
    for model in MODELS:
        if model.name == name:
            return model
    raise KeyError(name)
