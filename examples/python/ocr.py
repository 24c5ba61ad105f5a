#!/usr/bin/env python3
"""Reads a page: one network finds lines of text, another reads each.

    ocr.py [--page PAGE.npy]

PAGE is an array [3, 640, 640] of pixels, 0 to 255. Without one, a page that tools/models/fetch_ocr.py has drawn. Both networks are
PaddleOCR's, of the wheel rapidocr-onnxruntime. The reader takes lines of any width: one executable with plans for two widths, and
kernels for all others.
"""

import argparse
import os
from pathlib import Path

import numpy as np

import collage

MODELS = Path(os.environ.get("COLLAGE_MODELS", Path.home() / ".cache/collage/models"))
SIDE, HEIGHT = 640, 48


def normalised(pixels: np.ndarray) -> np.ndarray:
    """[3, H, W] in 0 to 255 as the networks want it, [1, 3, H, W]."""
    return ((pixels / 255.0 - 0.5) / 0.5)[None].astype("float32")


def lines_in(probability: np.ndarray) -> list[tuple[int, int, int, int]]:
    """Returns top, bottom, left and right of the lines in a map [H, W] of how likely each pixel is part of text."""
    mask = probability > 0.3
    rows = mask.any(1)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], rows.astype(int), [0]])))
    boxes = []
    for top, bottom in zip(edges[::2], edges[1::2]):
        columns = np.flatnonzero(mask[top:bottom].any(0))
        if bottom - top > 8:
            boxes.append((int(top), int(bottom), int(columns[0]), int(columns[-1]) + 1))
    return boxes


def cut(page: np.ndarray, box: tuple[int, int, int, int]) -> np.ndarray:
    """Returns a line and what is around it, 48 pixels high, by the nearest pixels."""
    top, bottom, left, right = box
    edge = (bottom - top) // 2
    part = page[:, max(top - edge, 0) : bottom + edge, max(left - edge, 0) : right + edge]
    width = max(round(part.shape[2] * HEIGHT / part.shape[1]), HEIGHT)
    ys = np.arange(HEIGHT) * part.shape[1] // HEIGHT
    xs = np.arange(width) * part.shape[2] // width
    return part[:, ys][:, :, xs]


def text_of(scores: np.ndarray, characters: list[str]) -> str:
    """Returns what `scores`, [steps, characters], spell: repeated ones count once, the first is none (CTC)."""
    best = scores.argmax(-1)
    kept = [now for before, now in zip([0, *best[:-1]], best) if now != before and now != 0]
    return "".join(characters[place - 1] for place in kept)


def characters_of(model: Path) -> list[str]:
    """Returns the characters that the reader knows, which its file lists."""
    import onnx

    listed = {entry.key: entry.value for entry in onnx.load(model).metadata_props}["character"]
    return [*listed.splitlines(), " "]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--page", type=Path)
    parser.add_argument("--budget", default="15s", help="for compiling each network")
    arguments = parser.parse_args()
    folder = MODELS / "ocr"
    if not (folder / "detector.onnx").exists():
        raise SystemExit("ocr: error: the networks are not there: run ./setup demo")
    if arguments.page:
        page = np.load(arguments.page).astype("float32")
    else:
        page = (np.load(folder / "detector.npz")["in.x"][0] * 0.5 + 0.5) * 255
    settings = {"threads": 1, "budget": arguments.budget}
    find = collage.compile(folder / "detector.onnx", shapes={"x": (1, 3, SIDE, SIDE)}, **settings)
    read = collage.compile(
        folder / "recogniser.onnx", dims={"x[0]": 1, "x[2]": HEIGHT, "x[3]": (HEIGHT, 2 * SIDE)}, **settings
    )
    characters = characters_of(folder / "recogniser.onnx")
    for box in lines_in(find(normalised(page)).reshape(SIDE, SIDE)):
        print(f"rows {box[0]} to {box[1]}: {text_of(read(normalised(cut(page, box)))[0], characters)}")


if __name__ == "__main__":
    main()
