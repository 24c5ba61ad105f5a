#!/usr/bin/env python3
"""Counts the regions of text in a detector's probability map: count_text.py OUTPUT.npz"""

from __future__ import annotations

import sys

import numpy as np


def count_regions(mask: np.ndarray, smallest: int) -> int:
    """Connected regions of at least `smallest` pixels in a 2-d mask, by flooding from each unseen pixel."""
    seen = np.zeros_like(mask)
    regions = 0
    for start in zip(*np.nonzero(mask)):
        if seen[start]:
            continue
        stack, size = [start], 0
        seen[start] = True
        while stack:
            y, x = stack.pop()
            size += 1
            for ny, nx in ((y + 1, x), (y - 1, x), (y, x + 1), (y, x - 1)):
                if 0 <= ny < mask.shape[0] and 0 <= nx < mask.shape[1] and mask[ny, nx] and not seen[ny, nx]:
                    seen[ny, nx] = True
                    stack.append((ny, nx))
        regions += size >= smallest
    return regions


if __name__ == "__main__":
    outputs = np.load(sys.argv[1])
    probability = outputs[outputs.files[0]].reshape(640, 640)
    print(f"lines of text found in the picture: {count_regions(probability > 0.3, smallest=100)}")
