#!/usr/bin/env python3
"""export_architectures.py: writes the networks of architectures.py as ONNX files, with random weights.

    export_architectures.py [--folder FOLDER] [NAME…]

Needs torch, torchvision, timm, transformers and onnxscript, which no test of Collage needs: use an environment of its own.
Files that are there are left alone. A network that cannot be exported is reported, and the next one tried.
"""

from __future__ import annotations

import argparse
import gc
import time
import warnings
from pathlib import Path

import timm
import torch
import torchvision
import transformers

from architectures import ARCHITECTURES, DYNAMO, Architecture
from make_models import default_folder

OPSET = 18
# Sizes of a small transformer, by the names that configurations have for them.
SMALL = {
    "vocab_size": 100,
    "hidden_size": 64,
    "d_model": 64,
    "n_embd": 64,
    "dim": 64,
    "embedding_size": 32,
    "num_hidden_layers": 2,
    "num_layers": 2,
    "n_layer": 2,
    "n_layers": 2,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "num_attention_heads": 4,
    "num_heads": 4,
    "n_head": 4,
    "n_heads": 4,
    "num_key_value_heads": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "intermediate_size": 128,
    "ffn_dim": 128,
    "d_ff": 128,
    "hidden_dim": 128,
    "encoder_ffn_dim": 128,
    "decoder_ffn_dim": 128,
    "d_kv": 16,
    "head_dim": 16,
    "image_size": 64,
    "max_position_embeddings": 64,
    "max_source_positions": 100,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 4,
    "conv_dim": (32,) * 7,
    "word_embed_proj_dim": 64,
}
# The published shapes of these follow from others, or vary by stage.
AS_PUBLISHED = ("SegformerConfig", "MobileViTConfig")


def tiny(model: str, config: str, **more: object) -> torch.nn.Module:
    """A model of transformers with two narrow layers."""
    kind = getattr(transformers, config)
    known = kind().to_dict()
    small = {} if config in AS_PUBLISHED else {k: v for k, v in SMALL.items() if k in known and known[k] is not None}
    if config == "BertConfig" or "max_position_embeddings" in known and model in ("RobertaModel", "MPNetModel"):
        small["max_position_embeddings"] = 66
    made = kind(**small, **more)
    made.use_cache = False
    made._attn_implementation = "eager"
    return getattr(transformers, model)(made)


class FirstResult(torch.nn.Module):
    """A network with the names of its inputs, and of what it returns the first tensor."""

    def __init__(self, network: torch.nn.Module, names: list[str]):
        super().__init__()
        self.network, self.names = network, names

    def forward(self, *values: torch.Tensor) -> torch.Tensor:
        if len(self.names) > 1 or self.names[0] != "x":
            result = self.network(**dict(zip(self.names, values, strict=True)))
        else:
            result = self.network(*values)
        while not isinstance(result, torch.Tensor):
            result = next(iter(result.values())) if hasattr(result, "values") else result[0]
        return result


def sample(row: Architecture, sizes: dict[str, int]) -> tuple[torch.Tensor, ...]:
    values = []
    for given in row.inputs:
        shape = [sizes[size] if isinstance(size, str) else size for size in given.shape]
        values.append(torch.randn(shape) if given.largest is None else torch.randint(0, given.largest + 1, shape))
        if given.name == "attention_mask":
            values[-1] = torch.ones(shape, dtype=torch.int64)
    return tuple(values)


def settle(network: torch.nn.Module, values: tuple[torch.Tensor, ...]) -> None:
    """Gives batch norms the means and variances of random inputs, as trained networks have those of their data."""
    norms = [m for m in network.modules() if isinstance(m, torch.nn.modules.batchnorm._BatchNorm)]
    if not norms:
        return
    for norm in norms:
        norm.momentum = 1.0
        norm.train()
    with torch.no_grad():
        network(*values)
    network.eval()


def export(row: Architecture, exporter: str, path: Path) -> None:
    torch.manual_seed(0)
    network = eval(row.make, {"torchvision": torchvision, "timm": timm, "tiny": tiny})  # the table's own
    for parameter in network.parameters():
        if (
            parameter.dim() > 1 and not parameter.any()
        ):  # a layer whose training begins at zero would hide all before it
            torch.nn.init.normal_(parameter, std=0.02)
    names = [given.name for given in row.inputs]
    wrapped = FirstResult(network.eval(), names)
    # The exporters take a size of 1 for one that cannot be another.
    sizes = {name: max(size, 2) for name, size in row.sizes[0].items()}
    values = sample(row, sizes)
    settle(wrapped, values)
    partial = path.with_suffix(".part")
    dynamic = {g.name: {axis: s for axis, s in enumerate(g.shape) if isinstance(s, str)} for g in row.inputs}
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if exporter == DYNAMO:
            shapes = tuple(dict.fromkeys(axes, torch.export.Dim.DYNAMIC) for axes in dynamic.values())
            program = torch.onnx.export(
                wrapped,
                values,
                dynamo=True,
                dynamic_shapes=(shapes,),
                input_names=names,
                opset_version=OPSET,
                verbose=False,
            )
            rename(program.model, row)
            program.save(str(partial), external_data=False)
        else:
            torch.onnx.export(
                wrapped,
                values,
                str(partial),
                dynamo=False,
                input_names=names,
                output_names=["y"],
                dynamic_axes=dynamic,
                opset_version=OPSET,
            )
    partial.rename(path)


def rename(model, row: Architecture) -> None:
    """Calls the dynamic dimensions of inputs as the table does."""
    import onnx_ir

    for value, given in zip(model.graph.inputs, row.inputs, strict=True):
        value.shape = onnx_ir.Shape(list(given.shape))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help="networks to export; all of them if none is given")
    parser.add_argument("--folder", type=Path, default=default_folder(), help="parent folder (default: %(default)s)")
    args = parser.parse_args()
    folder = args.folder / "architectures"
    folder.mkdir(parents=True, exist_ok=True)
    for row in ARCHITECTURES:
        for exporter in row.exporters:
            path = row.file(folder, exporter)
            if path.exists() or args.names and row.name not in args.names:
                continue
            started = time.time()
            try:
                export(row, exporter, path)
                print(
                    f"{row.name:32s} {exporter:12s} {path.stat().st_size / 1e6:6.1f} MB  {time.time() - started:.0f} s",
                    flush=True,
                )
            except Exception as error:  # one network's failure leaves the others
                print(f"{row.name:32s} {exporter:12s} not exported: {str(error).splitlines()[0][:160]}", flush=True)
            gc.collect()


if __name__ == "__main__":
    main()
