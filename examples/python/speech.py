#!/usr/bin/env python3
"""Finds speech in a stream of sound: Silero's detector, a network with a state, piece by piece as sound arrives.

    speech.py [--sound SOUND.npy] [--seconds 5]

SOUND is an array of samples, 16,000 a second, between -1 and 1. Without one, a voice-like sound between two silences is made up.
The network comes from the wheel faster-whisper. It takes 512 new samples behind 64 old ones, and its state h, c.
"""

import argparse
import importlib.util
import time
from pathlib import Path

import numpy as np

import collage

RATE, NEW, OLD = 16_000, 512, 64


def model() -> Path:
    spec = importlib.util.find_spec("faster_whisper")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("speech: error: the wheel faster-whisper is not installed: run ./setup")
    return next((Path(spec.submodule_search_locations[0]) / "assets").glob("silero_vad*.onnx"))


def made_up(seconds: float) -> np.ndarray:
    """Silence, a buzz through three formants whose pitch and loudness change, silence."""
    count = int(seconds * RATE)
    at = np.arange(count) / RATE
    pitch = 120 + 25 * np.sin(2 * np.pi * 3 * at)
    phase = 2 * np.pi * np.cumsum(pitch) / RATE
    voice = np.zeros(count)
    for harmonic in range(1, 25):
        hertz = harmonic * 120
        loudness = sum(np.exp(-(((hertz - centre) / 150) ** 2)) for centre in (650, 1100, 2500))
        voice += loudness * np.sin(harmonic * phase)
    voice *= 0.5 + 0.5 * np.sin(2 * np.pi * 4 * at)
    voice[(at < seconds / 3) | (at > 2 * seconds / 3)] = 0
    noise = np.random.default_rng(0).normal(0, 1e-3, count)
    return (0.3 * voice / max(abs(voice).max(), 1e-9) + noise).astype("float32")


class Detector:
    """The network and its state: call it with 512 samples after 512 samples."""

    def __init__(self, exe: collage.Executable) -> None:
        self._exe = exe
        self._old = np.zeros(OLD, "float32")
        self._h = np.zeros((1, 1, 128), "float32")
        self._c = np.zeros((1, 1, 128), "float32")

    def __call__(self, samples: np.ndarray) -> float:
        """Returns the probability of speech in `samples`, [512]."""
        piece = np.concatenate([self._old, samples])[None]
        probability, self._h, self._c = self._exe(piece, self._h, self._c)
        self._old = samples[-OLD:]
        return float(probability.reshape(-1)[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sound", type=Path)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--budget", default="5s", help="for compiling")
    arguments = parser.parse_args()
    sound = np.load(arguments.sound).astype("float32") if arguments.sound else made_up(arguments.seconds)
    # One piece at a time: a number of pieces, which the model leaves open, is one.
    exe = collage.compile(model(), threads=1, budget=arguments.budget, dims={"seq_len": 1})
    detector = Detector(exe)
    started = time.perf_counter()
    pieces = len(sound) // NEW
    for piece in range(pieces):
        probability = detector(sound[piece * NEW : (piece + 1) * NEW])
        if piece % 8 == 0:
            print(f"{piece * NEW / RATE:5.2f} s  {probability:4.2f}  {'#' * round(40 * probability)}")
    took = time.perf_counter() - started
    speed = pieces * NEW / RATE / took
    print(f"{pieces} pieces of 32 ms, {1e6 * took / max(pieces, 1):.0f} us each: {speed:.0f} times as fast as sound")


if __name__ == "__main__":
    main()
