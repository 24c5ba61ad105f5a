#!/usr/bin/env python3
"""Compares sentences by their meaning: a text encoder, the mean of its vectors, and the cosine between two such means.

    embed.py [--model MODEL.onnx --vocabulary VOCAB.txt] [SENTENCE…]

MODEL has the form of exported sentence transformers, with sizes left open; VOCAB.txt lies beside it, a piece of a word a line.
Without them, a small encoder that tools/models/encoder.py makes: its weights are random, so that sentences are alike if they share
words, and words are numbered by a checksum. One executable computes sentences of any length.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np

import collage

ROOT = Path(__file__).resolve().parents[2]
WORDS = 1000  # that the small encoder knows
SENTENCES = ["a cat sat on the mat", "the cat is on the mat today", "prices rose again in june"]


def words_of(sentence: str) -> list[str]:
    return re.findall(r"\w+|[^\w\s]", sentence.lower())


def numbered(sentence: str) -> list[int]:
    return [zlib.crc32(word.encode()) % WORDS for word in words_of(sentence)]


def pieces_of(word: str, vocabulary: dict[str, int]) -> list[int]:
    """Returns the numbers of the longest pieces that `word` begins and goes on with (WordPiece)."""
    pieces, start = [], 0
    while start < len(word):
        prefix = "##" if start else ""
        ends = (end for end in range(len(word), start, -1) if prefix + word[start:end] in vocabulary)
        end = next(ends, 0)
        if not end:
            return [vocabulary["[UNK]"]]
        pieces.append(vocabulary[prefix + word[start:end]])
        start = end
    return pieces


def tokenizer(file: Path) -> Callable[[str], list[int]]:
    vocabulary = {piece: number for number, piece in enumerate(file.read_text().splitlines())}

    def tokens(sentence: str) -> list[int]:
        pieces = [piece for word in words_of(sentence) for piece in pieces_of(word, vocabulary)]
        return [vocabulary["[CLS]"], *pieces, vocabulary["[SEP]"]]

    return tokens


def compiled(model: Path, budget: str) -> collage.Executable:
    """Returns an executable for one sentence of any length, tuned for two lengths."""
    return collage.compile(model, threads=1, budget=budget, dims={"batch": 1}, tune_at={"sequence": [8, 32]})


def embedding(exe: collage.Executable, tokens: list[int]) -> np.ndarray:
    """Returns the mean of the tokens' vectors, [width], of length 1."""
    ids = np.array([tokens], "int64")
    given = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
    results = exe.run({port.name: given[port.name] for port in exe.inputs})
    mean = results["last_hidden_state"][0].mean(0)
    return mean / np.linalg.norm(mean)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sentences", nargs="*", metavar="SENTENCE")
    parser.add_argument("--model", type=Path)
    parser.add_argument("--vocabulary", type=Path)
    parser.add_argument("--budget", default="10s", help="for compiling")
    arguments = parser.parse_args()
    if (arguments.model is None) != (arguments.vocabulary is None):
        parser.error("--model and --vocabulary go together")
    with tempfile.TemporaryDirectory() as folder:
        model = arguments.model or Path(folder) / "encoder.onnx"
        if not arguments.model:
            maker = [sys.executable, ROOT / "tools/models/encoder.py", model, "--words", str(WORDS)]
            subprocess.run(maker, check=True)
        exe = compiled(model, arguments.budget)
    tokens = tokenizer(arguments.vocabulary) if arguments.vocabulary else numbered
    sentences = arguments.sentences or SENTENCES
    vectors = np.array([embedding(exe, tokens(sentence)) for sentence in sentences])
    for sentence, cosines in zip(sentences, vectors @ vectors.T, strict=True):
        print(*(f"{cosine:5.2f}" for cosine in cosines), "", sentence)


if __name__ == "__main__":
    main()
