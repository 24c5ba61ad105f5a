#!/usr/bin/env python3
"""export_open_models.py: writes the models of dynamic_models.py as ONNX files, with random weights.

    export_open_models.py [--folder FOLDER] [NAME…]

Needs torch, transformers and onnxscript, which no test of Collage needs: use an environment of its own, as
benchmarks/open_models.py does. Files that are there are left alone. The detector is that of fetch_ocr.py, which others trained.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers.modeling_outputs import BaseModelOutput

from dynamic_models import MODELS, OpenModel
from make_models import default_folder

OPSET = 18


class Forward(torch.nn.Module):
    """A function of a network and its inputs as a module."""

    def __init__(self, network: torch.nn.Module, call: Callable[..., Any]):
        super().__init__()
        self.network, self.call = network, call

    def forward(self, *values: torch.Tensor) -> Any:
        return self.call(self.network, *values)


def bert(model: OpenModel, width: int, heads: int) -> Forward:
    config = transformers.BertConfig(
        hidden_size=width, num_hidden_layers=model.layers, num_attention_heads=heads, intermediate_size=4 * width
    )
    network = transformers.BertModel(config, add_pooling_layer=False)
    return Forward(
        network,
        lambda net, ids, mask, types: net(input_ids=ids, attention_mask=mask, token_type_ids=types).last_hidden_state,
    )


def gpt2(model: OpenModel) -> Forward:
    network = transformers.GPT2LMHeadModel(transformers.GPT2Config(n_layer=model.layers))

    def call(net: torch.nn.Module, ids: torch.Tensor, mask: torch.Tensor, *pasts: torch.Tensor) -> Any:
        cache = transformers.DynamicCache()
        for layer in range(model.layers):
            cache.update(pasts[2 * layer], pasts[2 * layer + 1], layer)
        result = net(input_ids=ids, attention_mask=mask, past_key_values=cache, use_cache=True)
        presents = [part for layer in result.past_key_values.layers for part in (layer.keys, layer.values)]
        return (result.logits, *presents)

    return Forward(network, call)


def t5(model: OpenModel) -> Forward:
    config = transformers.T5Config(num_layers=model.layers, vocab_size=32_128)
    if model.name == "t5_encoder":
        encoder = transformers.T5EncoderModel(config)
        return Forward(encoder, lambda net, ids, mask: net(input_ids=ids, attention_mask=mask).last_hidden_state)

    def call(net: torch.nn.Module, ids: torch.Tensor, hidden: torch.Tensor, mask: torch.Tensor) -> Any:
        given = BaseModelOutput(last_hidden_state=hidden)
        return net(encoder_outputs=given, attention_mask=mask, decoder_input_ids=ids, use_cache=False).logits

    return Forward(transformers.T5ForConditionalGeneration(config), call)


def whisper(model: OpenModel) -> Forward:
    config = transformers.WhisperConfig(
        d_model=384,
        encoder_layers=model.layers,
        decoder_layers=model.layers,
        encoder_attention_heads=6,
        decoder_attention_heads=6,
        encoder_ffn_dim=1536,
        decoder_ffn_dim=1536,
    )
    network = transformers.WhisperForConditionalGeneration(config)
    if model.name == "whisper_encoder":
        return Forward(network.model.encoder, lambda net, features: net(features).last_hidden_state)

    def call(net: torch.nn.Module, ids: torch.Tensor, hidden: torch.Tensor) -> Any:
        given = BaseModelOutput(last_hidden_state=hidden)
        return net(encoder_outputs=given, decoder_input_ids=ids, use_cache=False).logits

    return Forward(network, call)


def wav2vec2(model: OpenModel) -> Forward:
    network = transformers.Wav2Vec2Model(transformers.Wav2Vec2Config(num_hidden_layers=model.layers))
    return Forward(network, lambda net, values: net(values).last_hidden_state)


def vit(model: OpenModel) -> Forward:
    network = transformers.ViTModel(transformers.ViTConfig(num_hidden_layers=model.layers), add_pooling_layer=False)
    return Forward(network, lambda net, values: net(pixel_values=values).last_hidden_state)


MAKERS: dict[str, Callable[[OpenModel], Forward]] = {
    "minilm": lambda model: bert(model, 384, 12),
    "bert_base": lambda model: bert(model, 768, 12),
    "gpt2": gpt2,
    "t5_encoder": t5,
    "t5_decoder": t5,
    "whisper_encoder": whisper,
    "whisper_decoder": whisper,
    "wav2vec2_base": wav2vec2,
    "vit_base": vit,
}


def sample(model: OpenModel) -> tuple[torch.Tensor, ...]:
    """Inputs at sizes that differ from each other and from 1, which exporters take for one that cannot be another."""
    sizes = {name: 2 + 3 * place for place, name in enumerate(model.dimensions())}
    if "samples" in sizes:
        sizes["samples"] = 16_000
    values = []
    for given in model.inputs:
        shape = given.at(sizes)
        values.append(torch.randn(shape) if given.largest is None else torch.randint(0, given.largest + 1, shape))
        if given.name.endswith("attention_mask"):
            values[-1] = torch.ones(shape, dtype=torch.int64)
    return tuple(values)


def settle(module: torch.nn.Module) -> None:
    """Moves biases and scales away from 0 and 1, with which compilers would leave them out."""
    for parameter in module.parameters():
        if parameter.dim() == 1:
            parameter.data += 0.02 * torch.randn_like(parameter)


def export(model: OpenModel, path: Path) -> None:
    import onnx_ir

    torch.manual_seed(0)
    module = MAKERS[model.name](model).eval()
    settle(module)
    dynamic = [
        {axis: torch.export.Dim.DYNAMIC for axis, size in enumerate(given.shape) if isinstance(size, str)}
        for given in model.inputs
    ]
    names = [given.name for given in model.inputs]
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            module,
            sample(model),
            dynamo=True,
            dynamic_shapes=(tuple(dynamic),),
            input_names=names,
            opset_version=OPSET,
            verbose=False,
        )
    for value, given in zip(program.model.graph.inputs, model.inputs, strict=True):
        value.shape = onnx_ir.Shape(list(given.shape))
    partial = path.with_suffix(".part")
    program.save(str(partial), external_data=False)
    partial.rename(path)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help="models to export; all of them if none is given")
    parser.add_argument("--folder", type=Path, default=default_folder(), help="parent folder (default: %(default)s)")
    arguments = parser.parse_args()
    for model in MODELS:
        path = model.file(arguments.folder)
        if model.name not in MAKERS or path.exists() or arguments.names and model.name not in arguments.names:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        started = time.time()
        export(model, path)
        print(f"{model.name:16s} {path.stat().st_size / 1e6:6.1f} MB  {time.time() - started:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
