#!/usr/bin/env python3
"""Brings three networks that others trained, and a picture to run them on, into the models folder.

    fetch_ocr.py [--out FOLDER]

The text detector, text recogniser and direction classifier come from the wheel rapidocr-onnxruntime. The picture is
drawn here: lines of text in a 5x7 bitmap font on a page. Each network gets FOLDER/ocr/NAME.onnx and NAME.npz with its
input (`in.x`) and the outputs of onnxruntime (`out.NAME`).
"""

from __future__ import annotations

import argparse
import importlib.util
import shutil
from pathlib import Path

import numpy as np
import onnxruntime

from make_models import default_folder

LINES = ("COLLAGE", "MIXES", "TOOLCHAINS", "FASTEST", "WINS")
SCALE = 6  # pixels per dot of the font
LINE_STEP = 110

# Columns of 7 dots each, lowest bit on top.
FONT = {
    "A": (0x7E, 0x11, 0x11, 0x11, 0x7E), "C": (0x3E, 0x41, 0x41, 0x41, 0x22), "E": (0x7F, 0x49, 0x49, 0x49, 0x41),
    "F": (0x7F, 0x09, 0x09, 0x09, 0x01), "G": (0x3E, 0x41, 0x49, 0x49, 0x7A), "H": (0x7F, 0x08, 0x08, 0x08, 0x7F),
    "I": (0x00, 0x41, 0x7F, 0x41, 0x00), "L": (0x7F, 0x40, 0x40, 0x40, 0x40), "M": (0x7F, 0x02, 0x0C, 0x02, 0x7F),
    "N": (0x7F, 0x04, 0x08, 0x10, 0x7F), "O": (0x3E, 0x41, 0x41, 0x41, 0x3E), "S": (0x46, 0x49, 0x49, 0x49, 0x31),
    "T": (0x01, 0x01, 0x7F, 0x01, 0x01), "W": (0x3F, 0x40, 0x38, 0x40, 0x3F), "X": (0x63, 0x14, 0x08, 0x14, 0x63),
}


def draw_line(text: str) -> np.ndarray:
    """White text on black, 7 * SCALE rows high, values 0 and 1."""
    columns: list[int] = []
    for letter in text:
        columns += [*FONT[letter], 0]
    dots = np.array([[(column >> row) & 1 for column in columns] for row in range(7)], np.float32)
    return np.kron(dots, np.ones((SCALE, SCALE), np.float32))


def draw_page(side: int) -> np.ndarray:
    """A page of `side` x `side` pixels, RGB in 0..255, dark text on light paper."""
    page = np.full((side, side), 235.0, np.float32)
    for i, text in enumerate(LINES):
        line = draw_line(text)
        top, left = 50 + i * LINE_STEP, 40 + 30 * i
        page[top:top + line.shape[0], left:left + line.shape[1]] -= 200.0 * line
    return np.repeat(page[None], 3, axis=0)


def normalise(pixels: np.ndarray) -> np.ndarray:
    """[3, H, W] in 0..255 as the networks want it: [1, 3, H, W], mean 0.5, deviation 0.5."""
    return ((pixels / 255.0 - 0.5) / 0.5)[None].astype(np.float32)


def crop(page: np.ndarray, width: int) -> np.ndarray:
    """The first line of text, 48 pixels high, padded to `width`."""
    result = np.full((3, 48, width), 235.0, np.float32)
    part = page[:, 47:95, 30:30 + width]
    result[:, :, :part.shape[2]] = part
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=default_folder(), help="parent folder (default: %(default)s)")
    folder = parser.parse_args().out / "ocr"
    folder.mkdir(parents=True, exist_ok=True)
    spec = importlib.util.find_spec("rapidocr_onnxruntime")
    if spec is None or spec.submodule_search_locations is None:
        raise SystemExit("fetch_ocr: error: the wheel rapidocr-onnxruntime is not installed: run ./setup")
    source = Path(spec.submodule_search_locations[0]) / "models"
    page = draw_page(640)
    inputs = {"detector": ("ch_PP-OCRv4_det_infer", normalise(page)),
              "recogniser": ("ch_PP-OCRv4_rec_infer", normalise(crop(page, 320))),
              "classifier": ("ch_ppocr_mobile_v2.0_cls_infer", normalise(crop(page, 192)))}
    for name, (file, x) in inputs.items():
        model = folder / f"{name}.onnx"
        shutil.copyfile(source / f"{file}.onnx", model)
        session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
        outputs = dict(zip([o.name for o in session.get_outputs()], session.run(None, {"x": x})))
        np.savez(model.with_suffix(".npz"), **{"in.x": x}, **{f"out.{k}": v for k, v in outputs.items()})
        print(f"{name:12s} input {x.shape}, outputs " + ", ".join(f"{k}{list(v.shape)}" for k, v in outputs.items()))


if __name__ == "__main__":
    main()
