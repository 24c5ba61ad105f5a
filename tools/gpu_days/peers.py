"""Others on the same GPU: PyTorch's compiler and ONNX Runtime, where they are installed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROUNDS = 200

# Networks of the same shape by the libraries that people take them from.
TORCH = """
import json, sys, time, torch
name, rounds = sys.argv[1], int(sys.argv[2])
def image(network, size=224):
    import torchvision
    return getattr(torchvision.models, network)(weights=None), [torch.randn(1, 3, size, size)]
def text(config, model, vocabulary, length=128):
    import transformers
    return getattr(transformers, model)(getattr(transformers, config)()), [torch.randint(0, vocabulary, (1, length))]
makers = {"resnet50": lambda: image("resnet50"), "mobilenet_v2": lambda: image("mobilenet_v2"),
          "vit_b16": lambda: image("vit_b_16"), "efficientnet_b0": lambda: image("efficientnet_b0"),
          "convnext_tiny": lambda: image("convnext_tiny"), "densenet121": lambda: image("densenet121"),
          "bert_base": lambda: text("BertConfig", "BertModel", 30522), "gpt2": lambda: text("GPT2Config", "GPT2Model", 50257)}
model, inputs = makers[name]()
model = model.eval().cuda()
inputs = [one.cuda() for one in inputs]
compiled = torch.compile(model, mode="max-autotune")
with torch.inference_mode():
    for _ in range(10):
        compiled(*inputs)
    times = []
    for _ in range(rounds):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        compiled(*inputs)
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
print(json.dumps(sorted(times)[rounds // 2]))
"""

ONNXRUNTIME = """
import json, sys, time
import numpy as np
import onnxruntime as ort
path, rounds = sys.argv[1], int(sys.argv[2])
if "CUDAExecutionProvider" not in ort.get_available_providers():
    sys.exit("ONNX Runtime has no provider for CUDA")
session = ort.InferenceSession(path, providers=["CUDAExecutionProvider"])
types = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(int32)": np.int32}
inputs = {one.name: np.ones(one.shape, types[one.type]) for one in session.get_inputs()}
times = []
for _ in range(rounds + 10):
    begin = time.perf_counter()
    session.run(None, inputs)
    times.append(time.perf_counter() - begin)
print(json.dumps(sorted(times[10:])[rounds // 2]))
"""


def times(model: Path, seconds: float) -> dict[str, float]:
    """Median seconds of a run, copies from and to the processor included where a peer makes them, by name."""
    found = {}
    for name, program, argument in (("torch.compile", TORCH, model.stem), ("ONNX Runtime", ONNXRUNTIME, str(model))):
        words = [sys.executable, "-c", program, argument, str(ROUNDS)]
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=max(1.0, seconds / 3), check=False)
        except subprocess.TimeoutExpired:
            continue
        if done.returncode == 0:
            found[name] = json.loads(done.stdout.splitlines()[-1])
    return found
