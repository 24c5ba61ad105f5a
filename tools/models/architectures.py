"""Sixty architectures of torchvision, timm and transformers: how each is made, its inputs, and the sizes to try.

Weights are random. Transformers are narrow and shallow, pictures small: files stay small, operators and their shapes are
those of the published models. export_architectures.py writes the files; only it needs PyTorch.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from model_check import Model

TORCHSCRIPT, DYNAMO = "torchscript", "dynamo"


@dataclass(frozen=True)
class Input:
    """Sizes are numbers, or names of dynamic dimensions. Integers if `largest` is given: 0 to `largest`."""

    name: str
    shape: tuple[int | str, ...]
    largest: int | None = None


@dataclass(frozen=True)
class Architecture:
    """`make` is an expression in which the libraries have their names, and `tiny(MODEL, CONFIG, more…)` is a small
    transformer. `options` are for compiling with dynamic sizes."""

    name: str
    library: str
    make: str
    inputs: tuple[Input, ...]
    sizes: tuple[dict[str, int], ...]
    exporters: tuple[str, ...] = (TORCHSCRIPT,)
    options: tuple[str, ...] = ()

    def file(self, folder: Path, exporter: str) -> Path:
        return folder / f"{self.name}.{exporter}.onnx"


BOTH = (TORCHSCRIPT, DYNAMO)
OPEN_PICTURE = (Input("x", ("batch", 3, "height", "width")),)
OPEN_SIZES = tuple(
    {"batch": n, "height": h, "width": w} for n, h, w in ((1, 64, 64), (2, 96, 64), (1, 75, 101), (3, 128, 128))
)
BATCHES = tuple({"batch": n} for n in (1, 2, 5, 9))


def picture(side: int) -> tuple[Input, ...]:
    return (Input("x", ("batch", 3, side, side)),)


def of_torchvision(
    name: str, side: int = 0, exporters: tuple[str, ...] = (TORCHSCRIPT,), more: str = ""
) -> Architecture:
    """A classifier; of pictures of any size unless `side` is given."""
    make = f"torchvision.models.{name}(weights=None{more})"
    return Architecture(
        name, "torchvision", make, picture(side) if side else OPEN_PICTURE, BATCHES if side else OPEN_SIZES, exporters
    )


def of_timm(name: str, side: int = 0, exporters: tuple[str, ...] = (TORCHSCRIPT,), more: str = "") -> Architecture:
    make = f"timm.create_model('{name}', pretrained=False{more})"
    return Architecture(
        name, "timm", make, picture(side) if side else OPEN_PICTURE, BATCHES if side else OPEN_SIZES, exporters
    )


TEXT_SIZES = tuple({"batch": n, "sequence": s} for n, s in ((1, 16), (2, 7), (1, 1), (3, 33)))
IDS = Input("input_ids", ("batch", "sequence"), 99)
MASK = Input("attention_mask", ("batch", "sequence"), 1)


def of_text(
    name: str, model: str, config: str, more: str = "", exporters: tuple[str, ...] = (DYNAMO,), masked: bool = True
) -> Architecture:
    return Architecture(
        name,
        "transformers",
        f"tiny('{model}', '{config}'{more})",
        (IDS, MASK) if masked else (IDS,),
        TEXT_SIZES,
        exporters,
    )


def of_pictures(
    name: str, model: str, config: str, side: int, more: str = "", exporters: tuple[str, ...] = (DYNAMO,)
) -> Architecture:
    return Architecture(
        name,
        "transformers",
        f"tiny('{model}', '{config}'{more})",
        (Input("pixel_values", ("batch", 3, side, side)),),
        BATCHES,
        exporters,
    )


SAMPLES = tuple({"batch": n, "samples": s} for n, s in ((1, 4000), (2, 1600), (1, 16000)))

ARCHITECTURES = (
    Architecture(
        "alexnet_features", "torchvision", "torchvision.models.alexnet(weights=None).features", OPEN_PICTURE, OPEN_SIZES
    ),
    Architecture(
        "vgg11_bn_features",
        "torchvision",
        "torchvision.models.vgg11_bn(weights=None).features",
        OPEN_PICTURE,
        OPEN_SIZES,
    ),
    of_torchvision("resnet18", exporters=BOTH),
    of_torchvision("resnet50"),
    of_torchvision("resnext50_32x4d"),
    of_torchvision("wide_resnet50_2"),
    of_torchvision("densenet121"),
    of_torchvision("squeezenet1_1", exporters=BOTH),
    of_torchvision("googlenet", more=", init_weights=False, aux_logits=False"),
    of_torchvision("inception_v3", 96, more=", init_weights=False"),
    of_torchvision("mobilenet_v2", exporters=BOTH),
    of_torchvision("mobilenet_v3_small", exporters=BOTH),
    of_torchvision("mnasnet0_5"),
    of_torchvision("shufflenet_v2_x0_5", exporters=BOTH),
    of_torchvision("efficientnet_b0"),
    of_torchvision("efficientnet_v2_s"),
    of_torchvision("regnet_y_400mf"),
    of_torchvision("convnext_tiny", exporters=BOTH),
    of_torchvision("vit_b_32", 64, (DYNAMO,), ", image_size=64"),
    of_torchvision("swin_t", 64),
    of_torchvision("swin_v2_t", 64),
    of_torchvision("maxvit_t", 224),
    Architecture(
        "deeplabv3_mobilenet_v3_large",
        "torchvision",
        "torchvision.models.segmentation.deeplabv3_mobilenet_v3_large(weights=None, weights_backbone=None)",
        OPEN_PICTURE,
        OPEN_SIZES,
    ),
    Architecture(
        "lraspp_mobilenet_v3_large",
        "torchvision",
        "torchvision.models.segmentation.lraspp_mobilenet_v3_large(weights=None, weights_backbone=None)",
        OPEN_PICTURE,
        OPEN_SIZES,
        BOTH,
    ),
    Architecture(
        "r3d_18",
        "torchvision",
        "torchvision.models.video.r3d_18(weights=None)",
        (Input("x", ("batch", 3, "frames", "height", "width")),),
        tuple({"batch": n, "frames": t, "height": h, "width": w} for n, t, h, w in ((1, 4, 32, 32), (2, 8, 48, 40))),
    ),
    of_timm("resnetv2_50"),
    of_timm("efficientnet_lite0"),
    of_timm("mobilenetv4_conv_small", exporters=BOTH),
    of_timm("ghostnet_100"),
    of_timm("hrnet_w18_small"),
    of_timm("dla34"),
    of_timm("res2net50_26w_4s"),
    of_timm("cspdarknet53"),
    of_timm("repvgg_a0"),
    of_timm("rexnet_100"),
    of_timm("nfnet_l0"),
    of_timm("poolformer_s12"),
    of_timm("convnextv2_atto"),
    of_timm("edgenext_xx_small"),
    of_timm("fastvit_t8"),
    of_timm("mobileone_s0"),
    of_timm("vit_tiny_patch16_224", 64, BOTH, ", img_size=64"),
    of_timm("deit_tiny_patch16_224", 64, more=", img_size=64"),
    of_timm("mixer_s32_224", 64, more=", img_size=64"),
    of_timm("gmlp_s16_224", 64, more=", img_size=64"),
    of_timm("swin_tiny_patch4_window7_224", 56, more=", img_size=56"),
    of_timm("levit_128s", 224),
    of_timm("xcit_nano_12_p16_224", 64, more=", img_size=64"),
    of_timm("eva02_tiny_patch14_224", 56, more=", img_size=56"),
    of_timm("coat_lite_tiny", 64, more=", img_size=64"),
    of_text("bert", "BertModel", "BertConfig", exporters=BOTH),
    of_text("roberta", "RobertaModel", "RobertaConfig"),
    of_text("distilbert", "DistilBertModel", "DistilBertConfig"),
    of_text("albert", "AlbertModel", "AlbertConfig"),
    of_text("electra", "ElectraModel", "ElectraConfig"),
    of_text("mpnet", "MPNetModel", "MPNetConfig"),
    of_text("deberta_v2", "DebertaV2Model", "DebertaV2Config"),
    of_text("fnet", "FNetModel", "FNetConfig", masked=False),
    of_text("t5_encoder", "T5EncoderModel", "T5Config"),
    of_text("gpt2", "GPT2LMHeadModel", "GPT2Config", exporters=BOTH),
    of_text("gpt_neox", "GPTNeoXForCausalLM", "GPTNeoXConfig"),
    of_text("opt", "OPTForCausalLM", "OPTConfig"),
    of_text("bloom", "BloomForCausalLM", "BloomConfig"),
    of_text("llama", "LlamaForCausalLM", "LlamaConfig", exporters=BOTH),
    of_text("qwen2", "Qwen2ForCausalLM", "Qwen2Config"),
    of_text("gemma", "GemmaForCausalLM", "GemmaConfig"),
    of_text("phi", "PhiForCausalLM", "PhiConfig"),
    of_text("clip_text", "CLIPTextModel", "CLIPTextConfig"),
    of_pictures("clip_vision", "CLIPVisionModel", "CLIPVisionConfig", 64),
    of_pictures("dinov2", "Dinov2Model", "Dinov2Config", 56),
    of_pictures("beit", "BeitModel", "BeitConfig", 64),
    of_pictures("segformer", "SegformerForSemanticSegmentation", "SegformerConfig", 64),
    of_pictures("mobilevit", "MobileViTModel", "MobileViTConfig", 64),
    Architecture(
        "wav2vec2",
        "transformers",
        "tiny('Wav2Vec2Model', 'Wav2Vec2Config')",
        (Input("input_values", ("batch", "samples")),),
        SAMPLES,
        (DYNAMO,),
        ("--dim", "samples=400..16000"),
    ),
    Architecture(
        "whisper_encoder",
        "transformers",
        "tiny('WhisperModel', 'WhisperConfig').encoder",
        (Input("input_features", ("batch", 80, 200)),),
        BATCHES,
        (DYNAMO,),
    ),
)


def models(folder: Path) -> list[Model]:
    """The exported files that are there."""
    found = []
    for row in ARCHITECTURES:
        ranges = {i.name: (0.0, float(i.largest)) for i in row.inputs if i.largest is not None}
        ranges |= {i.name: (-1.0, 1.0) for i in row.inputs if i.largest is None}
        for exporter in row.exporters:
            path = row.file(folder, exporter)
            if path.exists():
                found.append(
                    Model(row.name, f"{row.library}, {exporter}", path, row.sizes, ranges, dynamic_options=row.options)
                )
    return found
