"""The standard models with recurrent layers; see zoo.py."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from net import Net

if TYPE_CHECKING:
    from zoo import Scale


def lstm_tagger(net: Net, s: Scale) -> None:
    """Embedding, two bidirectional LSTM layers, one label per token."""
    length, hidden, vocab = s.pick(64, 32), s.pick(256, 32), s.pick(8000, 500)
    x = net.gather(net.normal((vocab, hidden), 1.0, "embedding"), net.tokens(length, vocab))
    x = net.transpose(x, 1, 0, 2)
    for _ in range(2):
        x = net.recurrent("LSTM", x, hidden, bidirectional=True)
    net.output(net.softmax(net.linear(net.transpose(x, 1, 0, 2), 20)), "labels")


def gru_speech(net: Net, s: Scale) -> None:
    """Strided 1-D convolutions over a spectrogram, two GRU layers, a label per frame."""
    frames, bands, hidden = s.pick(200, 64), s.pick(80, 40), s.pick(320, 48)
    x = net.image(1, bands, frames, name="spectrogram")
    for _ in range(2):
        x = net.conv_bn(x, hidden, 5, 2, 2, act=net.relu)
    x = net.transpose(x, 2, 0, 1)
    for _ in range(2):
        x = net.recurrent("GRU", x, hidden, bidirectional=False)
    net.output(net.softmax(net.linear(net.transpose(x, 1, 0, 2), 40)), "labels")


def nasrnn(net: Net, s: Scale) -> None:
    """The recurrent cell that Zoph and Le's architecture search found (arXiv 1611.01578), unrolled over a sequence."""
    length, hidden = s.pick(5, 3), s.pick(512, 32)
    sequence = net.image(length, hidden, name="sequence")
    of_input, of_state = (net.normal((hidden, 8 * hidden), 1 / math.sqrt(hidden)) for _ in range(2))
    state = cell = net.param(np.zeros((1, hidden)))
    for step in range(length):
        x = net.split(net.matmul(net.slice(sequence, 0, step, step + 1), of_input), 8)
        h = net.split(net.matmul(state, of_state), 8)
        left = net.mul(net.sigmoid(net.add(x[0], h[0])), net.relu(net.add(x[1], h[1])))
        right = net.add(net.sigmoid(net.add(x[2], h[2])), net.relu(net.mul(x[3], h[3])))
        cell = net.mul(net.tanh(net.add(net.tanh(left), cell)), net.tanh(right))
        left = net.mul(net.tanh(net.add(x[4], h[4])), net.sigmoid(net.add(x[5], h[5])))
        right = net.add(net.tanh(net.add(x[6], h[6])), net.sigmoid(net.add(x[7], h[7])))
        out = net.tanh(net.add(net.tanh(left), net.sigmoid(right)))
        state = net.tanh(net.mul(cell, out))
    net.output(state, "state")
