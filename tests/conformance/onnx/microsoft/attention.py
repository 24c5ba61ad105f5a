"""Attention."""

import math
from typing import Any

import numpy as np

from microsoft.case import Array, Case, Random, case


def key_mask(r: Random, b: int, s: int, total: int) -> Array | None:
    """Returns a mask of keys in one of its forms, or none."""
    kind = r.size(0, 3)
    if kind == 0:
        return None
    lengths = 1 + r.below(total, b)
    mask = (np.arange(total) < lengths[:, None]).astype(np.int32)
    if kind == 1:
        return mask
    if kind == 2:
        return np.repeat(mask[:, None, :], s, axis=1)
    return lengths.astype(np.int32)


@case("Attention")
def attention(r: Random) -> Case:
    """Attention with its projection."""
    b, s, heads, d = r.size(1, 3), r.size(1, 5), r.choice([1, 2, 3]), r.choice([4, 8])
    hidden, width = heads * d, r.choice([4, 6])
    past = r.choice([0, 0, 3])
    inputs: list[Array | None] = [r.floats(b, s, width), r.floats(width, 3 * hidden) / 2, r.floats(3 * hidden)]
    inputs.append(key_mask(r, b, s, s + past))
    inputs.append(r.floats(2, b, heads, past, d) if past else None)
    inputs.append(r.floats(1, heads, s, s) if past == 0 and r.flag() else None)
    attributes: dict[str, Any] = {"num_heads": heads, "unidirectional": int(r.flag())}
    if r.flag():
        attributes["scale"] = 0.3
    return Case(inputs, attributes, weights=(1, 2), outputs=(True, past > 0))


@case("MultiHeadAttention")
def multi_head_attention(r: Random) -> Case:
    """Attention of queries, keys and values that are there."""
    b, s, t, heads, d = r.size(1, 3), r.size(1, 5), r.size(1, 6), r.choice([1, 2, 3]), r.choice([4, 8])
    hidden = heads * d
    past = r.choice([0, 0, 2])
    inputs: list[Array | None] = [r.floats(b, s, hidden), r.floats(b, t, hidden), r.floats(b, t, hidden)]
    inputs.append(r.floats(3 * hidden) if r.flag() else None)
    mask = key_mask(r, b, s, t + past)
    inputs.append(mask)
    inputs.append(r.floats(1, heads, s, t + past) if r.flag() else None)
    if past:
        inputs += [r.floats(b, heads, past, d), r.floats(b, heads, past, d)]
    attributes: dict[str, Any] = {"num_heads": heads}
    if s == t and r.flag():
        attributes["unidirectional"] = 1
    return Case(inputs, attributes, weights=(3,), outputs=(True, past > 0, past > 0))


def attend(q: Array, k: Array, v: Array) -> Array:
    """Attention over [B, S, H, D] as [B, S, H * D]."""
    scores = np.einsum("bshd,bthd->bhst", q, k) / math.sqrt(q.shape[-1])
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return np.einsum("bhst,bthd->bshd", weights, v).reshape(*q.shape[:2], -1)


@case("MultiHeadAttention.packed")
def packed_attention(r: Random) -> Case:
    """Attention of queries, keys and values in one tensor, or keys and values in one."""
    b, s, t, heads, d = r.size(1, 3), r.size(1, 5), r.size(1, 6), r.choice([1, 2, 3]), r.choice([4, 8])
    if r.flag():
        packed = r.floats(b, s, heads, 3, d)
        return Case(
            [packed], {"num_heads": heads}, results=[attend(packed[..., 0, :], packed[..., 1, :], packed[..., 2, :])]
        )
    q, packed = r.floats(b, s, heads, d), r.floats(b, t, heads, 2, d)
    result = attend(q, packed[..., 0, :], packed[..., 1, :])
    return Case([q.reshape(b, s, -1), packed], {"num_heads": heads}, results=[result])


def angles(r: Random, positions: int, half: int) -> tuple[Array, Array]:
    """Returns tables of cosines and sines."""
    table = r.floats(positions, half)
    return np.cos(table), np.sin(table)


@case("GroupQueryAttention")
def group_query_attention(r: Random) -> Case:
    """Attention of heads that share keys, with a buffer of earlier ones."""
    groups, key_heads, d = r.choice([1, 2, 3]), r.choice([1, 2]), 16
    heads = groups * key_heads
    first = r.flag()
    b = r.size(1, 3)
    s = r.size(1, 5) if first else r.choice([1, 1, 3]) if b == 1 else 1
    past = 0 if first else r.size(1, 5)
    total = past + s
    rotary = r.flag()
    inputs: list[Array | None]
    if r.flag():
        inputs = [r.floats(b, s, (heads + 2 * key_heads) * d), None, None]
    else:
        inputs = [r.floats(b, s, heads * d), r.floats(b, s, key_heads * d), r.floats(b, s, key_heads * d)]
    buffer = r.choice([past, total, past + 4])
    lengths = np.full(b, total, np.int32)
    if past and b > 1:
        lengths[0] = s + r.size(0, past)
    kept = np.arange(buffer)[None, :] < (lengths - s)[:, None]
    kept = (
        kept[:, None, :, None] if buffer == total else np.ones(1)
    )  # where there is room, nothing is behind the tokens
    pasts = [(r.floats(b, key_heads, buffer, d) * kept).astype(np.float32) for _ in range(2)]
    inputs += pasts if past else [None, None]
    inputs += [(lengths - 1).astype(np.int32), np.array(total, np.int32)]
    cosines, sines = angles(r, 16, d // 2)
    inputs += [cosines, sines] if rotary else [None, None]
    attributes: dict[str, Any] = {"num_heads": heads, "kv_num_heads": key_heads, "do_rotary": int(rotary)}
    if rotary:
        attributes["rotary_interleaved"] = int(r.flag())
    if r.flag():
        attributes["local_window_size"] = r.size(1, 4)
    if r.flag():
        attributes["softcap"] = 2.0
    if r.choice([False, False, True]):
        attributes["smooth_softmax"] = 1
    return Case(inputs, attributes, weights=(6, 7, 8), outputs=(True, True, True))


@case("RotaryEmbedding")
def rotary_embedding(r: Random) -> Case:
    """Pairs of features turned by angles."""
    b, s, heads, d = r.size(1, 3), r.size(1, 5), r.size(1, 3), r.choice([4, 8])
    cosines, sines = angles(r, 16, d // 2)
    x = r.floats(b, heads, s, d) if r.flag() else r.floats(b, s, heads * d)
    positions = np.array([r.size(0, 5)]) if r.flag() else r.below(16, b, s)
    return Case([x, positions, cosines, sines], {"interleaved": int(r.flag()), "num_heads": 0}, weights=(2, 3))
