"""The standard models, written on `net.Net`.

Each function takes a `Net` and a `Scale`, adds the network with its sample input and declares its outputs.
`Scale(full=True)` is the published architecture; `Scale(full=False)` keeps every operator and connection pattern of
it but shrinks channels, depth and resolution, so that all models together stay under 40 MB for CI.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from net import Net, Value
from zoo_recurrent import gru_speech, lstm_tagger, nasrnn


@dataclass(frozen=True)
class Scale:
    """Picks sizes: `pick(full, small)` for a number or a list, `width(c)` for a channel count."""

    full: bool

    def pick(self, full, small):
        return full if self.full else small

    def width(self, channels: int) -> int:
        return channels if self.full else max(8, channels // 4 // 8 * 8)

    @property
    def classes(self) -> int:
        return self.pick(1000, 100)


# ---- image classification ---------------------------------------------------------------------------------------


def mnist(net: Net, s: Scale) -> None:
    """The MNIST convnet of the Collage tutorial (the ONNX zoo's mnist-12)."""

    def conv(x: Value, out: int) -> Value:
        w = net.normal((out, x.channels, 5, 5), math.sqrt(2.0 / (25 * x.channels)))
        y = net.op("Conv", [x, w], (1, out, *x.spatial), kernel_shape=(5, 5), auto_pad="SAME_UPPER")
        return net.relu(net.add(y, net.normal((out, 1, 1), 0.1, "b")))

    x = net.max_pool(conv(net.image(1, 1, 28, 28), 8), 2, 2)
    x = net.max_pool(conv(x, 16), 3, 3)
    x = net.matmul(net.reshape(x, 1, 256), net.normal((256, 10), 1 / 16))
    net.output(net.add(x, net.normal((1, 10), 0.1, "b")), "logits")


def _resnet(net: Net, s: Scale, depths: list[int], bottleneck: bool, groups: int = 1, group_width: int = 64,
            dims: int = 2) -> None:
    """ResNet v1.5 in 2 or 3 spatial dimensions, and ResNeXt with groups > 1."""
    expansion = 4 if bottleneck else 1

    def block(x: Value, planes: int, stride: int) -> Value:
        out = planes * expansion
        if bottleneck:
            mid = planes * group_width // 64 * groups
            y = net.conv_bn(x, mid, 1, act=net.relu)
            y = net.conv_bn(y, mid, 3, stride, groups=groups, act=net.relu)
            y = net.conv_bn(y, out, 1, gain=0.3)
        else:
            y = net.conv_bn(x, planes, 3, stride, act=net.relu)
            y = net.conv_bn(y, out, 3, gain=0.3)
        if stride != 1 or x.channels != out:
            x = net.conv_bn(x, out, 1, stride)
        return net.relu(net.add(y, x))

    if dims == 2:
        side = s.pick(224, 64)
        x = net.conv_bn(net.image(1, 3, side, side), s.width(64), 7, 2, act=net.relu)
        x = net.max_pool(x, 3, 2, 1)
    else:
        side = s.pick(112, 32)
        x = net.image(1, 3, s.pick(16, 4), side, side)
        x = net.conv_bn(x, s.width(64), (3, 7, 7), (1, 2, 2), act=net.relu)
    for stage, depth in enumerate(depths):
        for i in range(depth):
            x = block(x, s.width(64) * 2**stage, 2 if stage > 0 and i == 0 else 1)
    net.classifier(x, s.pick(1000 if dims == 2 else 400, 100))


def resnet18(net, s): _resnet(net, s, s.pick([2, 2, 2, 2], [1, 1, 1, 1]), bottleneck=False)
def resnet50(net, s): _resnet(net, s, s.pick([3, 4, 6, 3], [2, 1, 1, 1]), bottleneck=True)
def resnet3d_18(net, s): _resnet(net, s, s.pick([2, 2, 2, 2], [1, 1, 1, 1]), bottleneck=False, dims=3)


def resnext50(net: Net, s: Scale) -> None:
    """ResNeXt-50 32x4d (8 groups when small)."""
    _resnet(net, s, s.pick([3, 4, 6, 3], [2, 1, 1, 1]), True, groups=s.pick(32, 8), group_width=s.pick(4, 16))


def mobilenet_v2(net: Net, s: Scale) -> None:
    side = s.pick(224, 64)
    x = net.conv_bn(net.image(1, 3, side, side), s.width(32), 3, 2, act=net.relu6)
    plan = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]
    for expand, channels, repeat, first_stride in plan:
        for i in range(s.pick(repeat, min(repeat, 2))):
            stride, out = (first_stride if i == 0 else 1), s.width(channels)
            mid = x.channels * expand
            y = net.conv_bn(x, mid, 1, act=net.relu6) if expand != 1 else x
            y = net.conv_bn(y, mid, 3, stride, groups=mid, act=net.relu6)
            y = net.conv_bn(y, out, 1, gain=0.5)
            x = net.add(x, y) if stride == 1 and x.channels == out else y
    x = net.conv_bn(x, s.width(1280), 1, act=net.relu6)
    net.classifier(x, s.classes)


def squeezenet(net: Net, s: Scale) -> None:
    """SqueezeNet 1.1."""
    side = s.pick(224, 64)

    def fire(x: Value, squeeze: int, expand: int) -> Value:
        x = net.relu(net.conv(x, s.width(squeeze), 1, bias=True))
        out = s.width(expand)
        return net.concat([net.relu(net.conv(x, out, 1, bias=True)),
                           net.relu(net.conv(x, out, 3, pad=1, bias=True))])

    x = net.relu(net.conv(net.image(1, 3, side, side), s.width(64), 3, 2, bias=True))
    x = net.max_pool(x, 3, 2)
    for stage, fires in enumerate([[(16, 64)] * 2, [(32, 128)] * 2, [(48, 192)] * 2 + [(64, 256)] * 2]):
        if stage:
            x = net.max_pool(x, 3, 2)
        for squeeze, expand in fires[::s.pick(1, 2)]:
            x = fire(x, squeeze, expand)
    x = net.relu(net.conv(x, s.classes, 1, bias=True))
    net.output(net.flatten(net.global_avg_pool(x)), "logits")


def vgg16(net: Net, s: Scale) -> None:
    side = s.pick(224, 32)
    x = net.image(1, 3, side, side)
    for channels, repeat in [(64, 2), (128, 2), (256, 3), (512, 3), (512, 3)]:
        for _ in range(s.pick(repeat, min(repeat, 2))):
            x = net.relu(net.conv(x, s.width(channels), 3, pad=1, bias=True))
        x = net.max_pool(x, 2, 2)
    x = net.flatten(x)
    for _ in range(2):
        x = net.relu(net.gemm(x, s.pick(4096, 256), gain=math.sqrt(2)))
    net.output(net.gemm(x, s.classes), "logits")


def densenet121(net: Net, s: Scale) -> None:
    side, growth = s.pick(224, 64), s.pick(32, 8)

    def bn_relu_conv(x: Value, out: int, kernel: int) -> Value:
        return net.conv(net.relu(net.batch_norm(x)), out, kernel, pad=kernel // 2)

    x = net.max_pool(net.conv_bn(net.image(1, 3, side, side), 2 * growth, 7, 2, act=net.relu), 3, 2, 1)
    depths = s.pick([6, 12, 24, 16], [2, 3, 3, 2])
    for stage, depth in enumerate(depths):
        for _ in range(depth):
            x = net.concat([x, bn_relu_conv(bn_relu_conv(x, 4 * growth, 1), growth, 3)])
        if stage < len(depths) - 1:
            x = net.avg_pool(bn_relu_conv(x, x.channels // 2, 1), 2, 2)
    net.classifier(net.relu(net.batch_norm(x)), s.classes)


def inception_v3(net: Net, s: Scale) -> None:
    side = s.pick(299, 107)

    def conv(x: Value, out: int, kernel, stride=1, pad=0) -> Value:
        return net.conv_bn(x, s.width(out), kernel, stride, pad, act=net.relu)

    def chain(x: Value, *steps) -> Value:
        for step in steps:
            x = conv(x, *step)
        return x

    def pooled(x: Value, out: int) -> Value:
        return conv(net.avg_pool(x, 3, 1, 1, include_pad=True), out, 1)

    def block_a(x: Value, pool_features: int) -> Value:
        return net.concat([conv(x, 64, 1), chain(x, (48, 1), (64, 5, 1, 2)),
                           chain(x, (64, 1), (96, 3, 1, 1), (96, 3, 1, 1)), pooled(x, pool_features)])

    def reduce_b(x: Value) -> Value:
        return net.concat([conv(x, 384, 3, 2), chain(x, (64, 1), (96, 3, 1, 1), (96, 3, 2)), net.max_pool(x, 3, 2)])

    def block_c(x: Value, c7: int) -> Value:
        row, column = ((1, 7), 1, (0, 3)), ((7, 1), 1, (3, 0))
        return net.concat([conv(x, 192, 1), chain(x, (c7, 1), (c7, *row), (192, *column)),
                           chain(x, (c7, 1), (c7, *column), (c7, *row), (c7, *column), (192, *row)), pooled(x, 192)])

    def reduce_d(x: Value) -> Value:
        return net.concat([chain(x, (192, 1), (320, 3, 2)),
                           chain(x, (192, 1), (192, (1, 7), 1, (0, 3)), (192, (7, 1), 1, (3, 0)), (192, 3, 2)),
                           net.max_pool(x, 3, 2)])

    def block_e(x: Value) -> Value:
        def fork(y: Value) -> Value:
            return net.concat([conv(y, 384, (1, 3), 1, (0, 1)), conv(y, 384, (3, 1), 1, (1, 0))])

        return net.concat([conv(x, 320, 1), fork(conv(x, 384, 1)), fork(chain(x, (448, 1), (384, 3, 1, 1))),
                           pooled(x, 192)])

    x = chain(net.image(1, 3, side, side), (32, 3, 2), (32, 3), (64, 3, 1, 1))
    x = chain(net.max_pool(x, 3, 2), (80, 1), (192, 3))
    x = net.max_pool(x, 3, 2)
    for pool_features in s.pick([32, 64, 64], [32]):
        x = block_a(x, pool_features)
    x = reduce_b(x)
    for c7 in s.pick([128, 160, 160, 192], [128]):
        x = block_c(x, c7)
    x = reduce_d(x)
    for _ in range(s.pick(2, 1)):
        x = block_e(x)
    net.classifier(x, s.classes)


def efficientnet_b0(net: Net, s: Scale) -> None:
    side = s.pick(224, 64)
    x = net.conv_bn(net.image(1, 3, side, side), s.width(32), 3, 2, act=net.silu)
    plan = [(1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3), (6, 112, 3, 1, 5), (6, 192, 4, 2, 5),
            (6, 320, 1, 1, 3)]
    for expand, channels, repeat, first_stride, kernel in plan:
        for i in range(s.pick(repeat, min(repeat, 2))):
            stride, out = (first_stride if i == 0 else 1), s.width(channels)
            mid = x.channels * expand
            y = net.conv_bn(x, mid, 1, act=net.silu) if expand != 1 else x
            y = net.conv_bn(y, mid, kernel, stride, groups=mid, act=net.silu)
            gate = net.silu(net.conv(net.global_avg_pool(y), max(4, x.channels // 4), 1, bias=True))
            y = net.mul(y, net.sigmoid(net.conv(gate, mid, 1, bias=True)))
            y = net.conv_bn(y, out, 1)
            x = net.add(x, y) if stride == 1 and x.channels == out else y
    net.classifier(net.conv_bn(x, s.width(1280), 1, act=net.silu), s.classes)


def nasnet_a_mobile(net: Net, s: Scale) -> None:
    """NASNet-A (4 @ 1056), the mobile variant at 224x224."""
    side, filters, repeats = s.pick(224, 64), s.pick(44, 12), s.pick(4, 1)

    def separable(x: Value, out: int, kernel: int, stride: int = 1) -> Value:
        for step in (stride, 1):
            x = net.conv(net.relu(x), x.channels, kernel, step, kernel // 2, groups=x.channels)
            x = net.batch_norm(net.conv(x, out, 1), gain=0.6)
        return x

    def squeeze(x: Value, out: int) -> Value:
        return net.batch_norm(net.conv(net.relu(x), out, 1))

    def adjust(prev: Value | None, x: Value, out: int) -> Value:
        """Brings the cell before the previous one to the shape of `x` with `out` channels."""
        if prev is None:
            return x
        if prev.spatial != x.spatial:
            prev = net.relu(prev)
            left = net.conv(net.avg_pool(prev, 1, 2), out // 2, 1)
            shifted = net.pad(prev, (0, 0, 0, 0), (0, 0, 1, 1))
            shifted = net.slice(net.slice(shifted, 2, 1, 1 << 20), 3, 1, 1 << 20)
            right = net.conv(net.avg_pool(shifted, 1, 2), out - out // 2, 1)
            return net.batch_norm(net.concat([left, right]))
        return squeeze(prev, out) if prev.channels != out else prev

    def normal(x: Value, prev: Value | None, out: int) -> tuple[Value, Value]:
        p, h = adjust(prev, x, out), squeeze(x, out)
        parts = [p,
                 net.add(separable(h, out, 5), separable(p, out, 3)),
                 net.add(separable(p, out, 5), separable(p, out, 3)),
                 net.add(net.avg_pool(h, 3, 1, 1), p),
                 net.add(net.avg_pool(p, 3, 1, 1), net.avg_pool(p, 3, 1, 1)),
                 net.add(separable(h, out, 3), h)]
        return net.concat(parts), x

    def reduction(x: Value, prev: Value | None, out: int) -> tuple[Value, Value]:
        p, h = adjust(prev, x, out), squeeze(x, out)
        x1 = net.add(separable(h, out, 5, 2), separable(p, out, 7, 2))
        x2 = net.add(net.max_pool(h, 3, 2, 1), separable(p, out, 7, 2))
        x3 = net.add(net.avg_pool(h, 3, 2, 1), separable(p, out, 5, 2))
        x4 = net.add(x2, net.avg_pool(x1, 3, 1, 1))
        x5 = net.add(separable(x1, out, 3), net.max_pool(h, 3, 2, 1))
        return net.concat([x2, x3, x4, x5]), x

    x = net.conv_bn(net.image(1, 3, side, side), s.width(32), 3, 2, pad=0)
    x, prev = reduction(x, None, filters // 4)
    x, prev = reduction(x, prev, filters // 2)
    for stage in range(3):
        out = filters * 2**stage
        if stage:
            x, prev = reduction(x, prev, out)
        for _ in range(repeats):
            x, prev = normal(x, prev, out)
    net.classifier(net.relu(x), s.classes)


def convnext_tiny(net: Net, s: Scale) -> None:
    side, dims, depths = s.pick(224, 64), [s.width(c) for c in (96, 192, 384, 768)], s.pick([3, 3, 9, 3], [1, 1, 2, 1])

    def channels_first_norm(x: Value) -> Value:
        return net.transpose(net.layer_norm(net.transpose(x, 0, 2, 3, 1), 1e-6), 0, 3, 1, 2)

    x = channels_first_norm(net.conv(net.image(1, 3, side, side), dims[0], 4, 4, bias=True))
    for stage, depth in enumerate(depths):
        if stage:
            x = net.conv(channels_first_norm(x), dims[stage], 2, 2, bias=True)
        for _ in range(depth):
            c = x.channels
            y = net.transpose(net.conv(x, c, 7, pad=3, groups=c, bias=True), 0, 2, 3, 1)
            y = net.linear(net.gelu(net.linear(net.layer_norm(y, 1e-6), 4 * c)), c)
            y = net.transpose(net.mul(y, net.uniform((c,), 0.2, 0.4, "scale")), 0, 3, 1, 2)
            x = net.add(x, y)
    x = net.layer_norm(net.flatten(net.global_avg_pool(x)), 1e-6)
    net.output(net.gemm(x, s.classes), "logits")


# ---- generation, segmentation, detection ------------------------------------------------------------------------


def dcgan(net: Net, s: Scale) -> None:
    """The DCGAN generator: a 100-vector to a 64x64 image."""
    x, width = net.image(1, 100, 1, 1, name="z"), s.pick(64, 16)
    for i, factor in enumerate((8, 4, 2, 1)):
        x = net.conv_transpose(x, width * factor, 4, 1 if i == 0 else 2, 0 if i == 0 else 1)
        x = net.relu(net.batch_norm(x))
    net.output(net.tanh(net.conv_transpose(x, 3, 4, 2, 1)), "image")


def unet(net: Net, s: Scale) -> None:
    """U-Net with batch normalisation and transposed convolutions, 4 levels."""
    side, base, classes = s.pick(256, 64), s.pick(32, 8), 4

    def double(x: Value, out: int) -> Value:
        return net.conv_bn(net.conv_bn(x, out, 3, act=net.relu), out, 3, act=net.relu)

    skips, x = [], double(net.image(1, 3, side, side), base)
    for level in range(1, 5):
        skips.append(x)
        x = double(net.max_pool(x, 2, 2), base * 2**level)
    for level in reversed(range(4)):
        x = net.conv_transpose(x, base * 2**level, 2, 2, bias=True)
        x = double(net.concat([skips[level], x]), base * 2**level)
    net.output(net.sigmoid(net.conv(x, classes, 1, bias=True)), "mask")


def yolo(net: Net, s: Scale) -> None:
    """A one-stage detector in the manner of YOLOv5-s: CSP backbone, SPPF, PAN neck, three decoded heads."""
    side, classes = s.pick(320, 128), s.pick(80, 12)
    depths = s.pick((1, 2, 3, 1), (1, 1, 1, 1))
    anchors = [[(10, 13), (16, 30), (33, 23)], [(30, 61), (62, 45), (59, 119)], [(116, 90), (156, 198), (373, 326)]]

    def width(channels: int) -> int:
        return channels // s.pick(2, 8)

    def conv(x: Value, out: int, kernel: int = 1, stride: int = 1, pad=None) -> Value:
        return net.conv_bn(x, out, kernel, stride, pad, act=net.silu)

    def csp(x: Value, channels: int, depth: int, shortcut: bool = True) -> Value:
        out = width(channels)
        y, bypass = conv(x, out // 2), conv(x, out // 2)
        for _ in range(depth):
            z = conv(conv(y, out // 2), out // 2, 3)
            y = net.add(y, z) if shortcut else z
        return conv(net.concat([y, bypass]), out)

    x = conv(net.image(1, 3, side, side, name="images"), width(64), 6, 2, 2)
    pyramid = []
    for channels, depth in zip((128, 256, 512, 1024), depths):
        x = csp(conv(x, width(channels), 3, 2), channels, depth)
        pyramid.append(x)
    _, p3, p4, p5 = pyramid
    x = conv(p5, width(512))
    pools = [x]
    for _ in range(3):
        pools.append(net.max_pool(pools[-1], 5, 1, 2))
    p5 = conv(conv(net.concat(pools), width(1024)), width(512))
    n4 = conv(csp(net.concat([net.upsample2(p5), p4]), 512, 1, False), width(256))
    n3 = csp(net.concat([net.upsample2(n4), p3]), 256, 1, False)
    m4 = csp(net.concat([conv(n3, width(256), 3, 2), n4]), 512, 1, False)
    m5 = csp(net.concat([conv(m4, width(512), 3, 2), p5]), 1024, 1, False)

    decoded = []
    for feature, boxes, stride in zip((n3, m4, m5), anchors, (8, 16, 32)):
        h, w = feature.spatial
        raw = net.reshape(net.conv(feature, 3 * (5 + classes), 1, bias=True), 1, 3, 5 + classes, h, w)
        y = net.sigmoid(net.transpose(raw, 0, 1, 3, 4, 2))
        grid = np.stack(np.meshgrid(np.arange(w), np.arange(h)), -1).reshape(1, 1, h, w, 2).astype(np.float32)
        xy = net.mul(net.add(net.mul(net.slice(y, 4, 0, 2), 2.0), net.param(grid - 0.5, "grid")), float(stride))
        sizes = net.param(np.asarray(boxes, np.float32).reshape(1, 3, 1, 1, 2), "anchor")
        wh = net.mul(net.pow(net.mul(net.slice(y, 4, 2, 4), 2.0), 2.0), sizes)
        box = net.concat([xy, wh, net.slice(y, 4, 4, 5 + classes)], 4)
        decoded.append(net.reshape(box, 1, 3 * h * w, 5 + classes))
    net.output(net.concat(decoded, 1), "detections")


# ---- transformers -----------------------------------------------------------------------------------------------


def _heads(net: Net, x: Value, heads: int) -> Value:
    """(1, length, width) to (1, heads, length, width / heads)."""
    _, length, width = x.shape
    return net.transpose(net.reshape(x, 1, length, heads, width // heads), 0, 2, 1, 3)


def _attend(net: Net, q: Value, k: Value, v: Value, mask: Value | None) -> Value:
    """Scaled dot-product attention over split heads, the heads merged again."""
    scores = net.div(net.matmul(q, net.transpose(k, 0, 1, 3, 2)), math.sqrt(q.shape[-1]))
    context = net.matmul(net.softmax(net.add(scores, mask) if mask else scores), v)
    _, heads, length, width = context.shape
    return net.reshape(net.transpose(context, 0, 2, 1, 3), 1, length, heads * width)


def vit_b16(net: Net, s: Scale) -> None:
    side, dim, depth, heads = s.pick(224, 64), s.pick(768, 96), s.pick(12, 2), s.pick(12, 3)
    x = net.conv(net.image(1, 3, side, side), dim, 16, 16, bias=True, gain=0.7)
    length = x.spatial[0] * x.spatial[1]
    x = net.transpose(net.reshape(x, 1, dim, length), 0, 2, 1)
    x = net.concat([net.normal((1, 1, dim), 0.5, "cls"), x], 1)
    x = net.add(x, net.normal((1, length + 1, dim), 0.2, "pos"))
    for _ in range(depth):
        qkv = net.reshape(net.linear(net.layer_norm(x, 1e-6), 3 * dim), 1, length + 1, 3, heads, dim // heads)
        qkv = net.transpose(qkv, 2, 0, 3, 1, 4)
        y = _attend(net, *(net.pick(qkv, i, 0) for i in range(3)), None)
        x = net.add(x, net.linear(y, dim, gain=0.5))
        y = net.linear(net.gelu(net.linear(net.layer_norm(x, 1e-6), 4 * dim)), dim, gain=0.5)
        x = net.add(x, y)
    net.output(net.gemm(net.pick(net.layer_norm(x, 1e-6), 0, 1), s.classes), "logits")


def _bert(net: Net, s: Scale, depth: int) -> None:
    length, dim, heads, vocab = s.pick(128, 32), s.pick(768, 96), s.pick(12, 3), s.pick(30522, 1000)
    ids = net.tokens(length, vocab)
    valid = np.ones((1, length), np.int64)
    valid[0, length * 3 // 4:] = 0
    mask = net.cast(net.input("attention_mask", valid), net.dtype)
    mask = net.mul(net.sub(net.scalar(1.0), net.reshape(mask, 1, 1, 1, length)), -10000.0)
    x = net.gather(net.normal((vocab, dim), 0.5, "tokens"), ids)
    x = net.layer_norm(net.add(net.add(x, net.normal((1, 1, dim), 0.2, "type")),
                               net.normal((1, length, dim), 0.3, "pos")), 1e-12 if net.dtype == np.float32 else 1e-5)
    for _ in range(depth):
        q, k, v = (_heads(net, net.linear(x, dim), heads) for _ in range(3))
        y = net.linear(_attend(net, q, k, v, mask), dim, gain=0.5)
        x = net.layer_norm(net.add(y, x))
        y = net.linear(net.gelu(net.linear(x, 4 * dim)), dim, gain=0.5)
        x = net.layer_norm(net.add(y, x))
    net.output(x, "last_hidden_state")
    net.output(net.tanh(net.gemm(net.pick(x, 0, 1), dim)), "pooled")


def bert_base(net, s): _bert(net, s, s.pick(12, 2))
def distilbert(net, s): _bert(net, s, s.pick(6, 1))


def gpt2(net: Net, s: Scale) -> None:
    """GPT-2 small over a whole prompt, without a key-value cache; the output head shares the embedding."""
    length, dim, heads, vocab = s.pick(64, 32), s.pick(768, 96), s.pick(12, 3), s.pick(50257, 1000)
    embedding = net.normal((vocab, dim), 0.3, "wte")
    x = net.add(net.gather(embedding, net.tokens(length, vocab)), net.normal((1, length, dim), 0.1, "wpe"))
    causal = net.param(np.tril(np.ones((1, 1, length, length), bool)), "causal")
    for _ in range(s.pick(12, 2)):
        q, k, v = (_heads(net, part, heads) for part in net.split(net.linear(net.layer_norm(x), 3 * dim), 3))
        scores = net.div(net.matmul(q, net.transpose(k, 0, 1, 3, 2)), math.sqrt(dim // heads))
        scores = net.op("Where", [causal, scores, net.scalar(-10000.0)], scores.shape, scores.dtype)
        context = net.transpose(net.matmul(net.softmax(scores), v), 0, 2, 1, 3)
        x = net.add(net.linear(net.reshape(context, 1, length, dim), dim, gain=0.5), x)
        x = net.add(x, net.linear(net.gelu_tanh(net.linear(net.layer_norm(x), 4 * dim)), dim, gain=0.5))
    net.output(net.matmul(net.layer_norm(x), net.transpose(embedding, 1, 0)), "logits")


def llama(net: Net, s: Scale) -> None:
    """A small Llama: RMSNorm, rotary embeddings, grouped-query attention, SwiGLU, causal mask."""
    length, dim, heads, kv_heads = s.pick(64, 32), s.pick(1024, 96), s.pick(16, 4), s.pick(4, 2)
    vocab, hidden, size = s.pick(8192, 1000), s.pick(2816, 256), dim // heads
    angles = np.outer(np.arange(length), 10000.0 ** (-np.arange(0, size, 2) / size))
    angles = np.concatenate([angles, angles], 1).astype(np.float32)[None, None]
    cos, sin = net.param(np.cos(angles), "cos"), net.param(np.sin(angles), "sin")
    mask = net.param(np.triu(np.full((1, 1, length, length), -10000.0, np.float32), 1), "mask")

    def rms_norm(x: Value) -> Value:
        scale = net.sqrt(net.add(net.reduce_mean(net.pow(x, 2.0)), 1e-5))
        return net.mul(net.div(x, scale), net.uniform((dim,), 0.8, 1.2, "gamma"))

    def rotate(x: Value) -> Value:
        half = net.concat([net.neg(net.slice(x, 3, size // 2, size)), net.slice(x, 3, 0, size // 2)], 3)
        return net.add(net.mul(x, cos), net.mul(half, sin))

    def repeat(x: Value) -> Value:
        """Repeats each key or value head for its group of query heads."""
        y = net.reshape(x, 1, kv_heads, 1, length, size)
        shape = (1, kv_heads, heads // kv_heads, length, size)
        return net.reshape(net.op("Expand", [y, net.ints(*shape)], shape), 1, heads, length, size)

    x = net.gather(net.normal((vocab, dim), 1.0, "embedding"), net.tokens(length, vocab))
    for _ in range(s.pick(4, 2)):
        y = rms_norm(x)
        q = rotate(_heads(net, net.linear(y, dim, bias=False), heads))
        k = rotate(_heads(net, net.linear(y, kv_heads * size, bias=False), kv_heads))
        v = _heads(net, net.linear(y, kv_heads * size, bias=False), kv_heads)
        x = net.add(x, net.linear(_attend(net, q, repeat(k), repeat(v), mask), dim, bias=False, gain=0.5))
        y = rms_norm(x)
        y = net.mul(net.silu(net.linear(y, hidden, bias=False)), net.linear(y, hidden, bias=False))
        x = net.add(x, net.linear(y, dim, bias=False, gain=0.5))
    net.output(net.linear(rms_norm(x), vocab, bias=False), "logits")


MODELS = {f.__name__: f for f in (
    mnist, squeezenet, mobilenet_v2, efficientnet_b0, nasnet_a_mobile, densenet121, resnet18, resnet50, resnext50,
    inception_v3, vgg16, convnext_tiny, resnet3d_18, dcgan, unet, yolo, vit_b16, bert_base, distilbert, gpt2, llama,
    lstm_tagger, gru_speech, nasrnn)}

FLOAT16 = ("resnet50", "bert_base")
INT8 = ("resnet50",)
