"""peers.py: decoding.py's model in the programs that decoders are run by, each timed by its own loop.

    ONNX Runtime GenAI   the same file, with keys and values in one buffer
    llama.cpp            the same weights as GGUF: blocks of 32 in 4 or 8 bits are Q4_0 and Q8_0, to the bit

`./setup engines` installs them. OpenVINO GenAI has no row: it reads files of OpenVINO's own format only, which cannot hold
this model's attention ("Cannot create GroupQueryAttention layer"). Rows of OpenVINO have a request with states, as it makes.
"""

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

ROOM = 2048  # tokens that buffers have room for


def prompt_of(arguments: argparse.Namespace) -> list[int]:
    return [i * 7 % 100 for i in range(arguments.prompt)]


def print_times(firsts: list[float], tokens: list[float]) -> None:
    """Medians, as JSON; the first run of a prompt warms up."""
    first = statistics.median(firsts[1:])
    print(json.dumps({"first_token_seconds": first, "token_seconds": statistics.median(tokens)}))


# ---- ONNX Runtime GenAI ----


def write_genai_config(model: Path, arguments: argparse.Namespace) -> None:
    import onnx

    graph = onnx.load(model, load_external_data=False).graph
    past = next(one for one in graph.input if one.name.startswith("past"))
    attention = next(one for one in graph.node if one.op_type == "GroupQueryAttention")
    heads, key_heads = (next(a.i for a in attention.attribute if a.name == n) for n in ("num_heads", "kv_num_heads"))
    size = past.type.tensor_type.shape.dim[3].dim_value
    words = graph.output[0].type.tensor_type.shape.dim[2].dim_value
    names = {"key": "past_key_values.%d.key", "value": "past_key_values.%d.value"}
    decoder = {
        "session_options": {"intra_op_num_threads": arguments.threads, "provider_options": []},
        "filename": model.name,
        "head_size": size,
        "hidden_size": heads * size,
        "num_attention_heads": heads,
        "num_key_value_heads": key_heads,
        "num_hidden_layers": sum(one.op_type == "GroupQueryAttention" for one in graph.node),
        "inputs": {
            "input_ids": "input_ids",
            "attention_mask": "attention_mask",
            **{f"past_{part}_names": name for part, name in names.items()},
        },
        "outputs": {
            "logits": "logits",
            **{f"present_{part}_names": name.replace("past_key_values", "present") for part, name in names.items()},
        },
    }
    ids = {"bos_token_id": words - 2, "eos_token_id": words - 1, "pad_token_id": words - 1}
    config = {
        "model": {"type": "qwen2", "vocab_size": words, "context_length": ROOM, **ids, "decoder": decoder},
        "search": {"max_length": ROOM, "do_sample": False, "past_present_share_buffer": True},
    }
    (model.parent / "genai_config.json").write_text(json.dumps(config))


def run_genai(arguments: argparse.Namespace, model: str) -> None:
    import numpy as np
    import onnxruntime_genai

    write_genai_config(Path(model), arguments)
    loaded = onnxruntime_genai.Model(str(Path(model).parent))
    firsts, tokens = [], []
    for _ in range(3):
        parameters = onnxruntime_genai.GeneratorParams(loaded)
        parameters.set_search_options(max_length=ROOM, past_present_share_buffer=True)
        generator = onnxruntime_genai.Generator(loaded, parameters)
        begin = time.perf_counter()
        generator.append_tokens(np.array([prompt_of(arguments)], np.int32))
        generator.generate_next_token()
        firsts.append(time.perf_counter() - begin)
        for _ in range(arguments.tokens):
            begin = time.perf_counter()
            generator.generate_next_token()
            tokens.append(time.perf_counter() - begin)
    print_times(firsts, tokens)


# ---- OpenVINO ----


def read_stateful(model: str) -> Any:
    """The model as OpenVINO reads it, for one sequence, with keys and values as its states."""
    import openvino
    from openvino._offline_transformations import apply_make_stateful_transformation

    read = openvino.Core().read_model(model)
    names = [one.get_any_name() for one in read.inputs]
    read.reshape({one.get_any_name(): openvino.PartialShape([1, *list(one.partial_shape)[1:]]) for one in read.inputs})
    states = {name: name.replace("past_key_values", "present") for name in names if name.startswith("past")}
    apply_make_stateful_transformation(read, states)
    return read


# ---- llama.cpp ----

# A row of one block of 32: what GGUF calls it, and its numbers in bytes.
FORMATS = {4: "Q4_0", 8: "Q8_0", 32: "F32"}


class GgufWriter:
    """Writes the weights of an ONNX file of tools/models/decoder.py."""

    def __init__(self, model: Path, bits: int, file: Path) -> None:
        import gguf
        import onnx
        from onnx import numpy_helper

        graph = onnx.load(model).graph
        self.weights = {one.name: numpy_helper.to_array(one) for one in graph.initializer}
        self.format = gguf.GGMLQuantizationType[FORMATS[bits]]
        self.bits = bits
        self.writer = gguf.GGUFWriter(file, "qwen2")
        attention = next(one for one in graph.node if one.op_type == "GroupQueryAttention")
        self.heads, self.key_heads = (
            next(a.i for a in attention.attribute if a.name == name) for name in ("num_heads", "kv_num_heads")
        )
        self.layers = sum(one.op_type == "GroupQueryAttention" for one in graph.node)

    def write(self) -> None:
        words, width = self.weights["words"].shape
        self.describe(words, width)
        self.writer.add_tensor("token_embd.weight", self.weights["words"])
        self.add_vector("output_norm.weight", self.weights[f"layers.{self.layers - 1}.norm2.gain"])
        self.add_rows("output.weight", "logits", 0, words)
        for i in range(self.layers):
            self.add_layer(i, width)
        self.writer.write_header_to_file()
        self.writer.write_kv_data_to_file()
        self.writer.write_tensors_to_file()
        self.writer.close()

    def describe(self, words: int, width: int) -> None:
        inner = self.product("layers.0.gate")[1].shape[0]
        writer = self.writer
        writer.add_context_length(ROOM)
        writer.add_embedding_length(width)
        writer.add_block_count(self.layers)
        writer.add_feed_forward_length(inner)
        writer.add_head_count(self.heads)
        writer.add_head_count_kv(self.key_heads)
        writer.add_layer_norm_rms_eps(1e-6)
        writer.add_rope_freq_base(10000.0)
        # Prompts are numbers of words; a vocabulary must be there all the same.
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre("qwen2")
        writer.add_token_list([f"w{i}" for i in range(words)])
        writer.add_token_types([1] * words)
        writer.add_token_merges(["w 0"])
        writer.add_eos_token_id(words - 1)

    def add_layer(self, i: int, width: int) -> None:
        at, to = f"layers.{i}.", f"blk.{i}."
        before = "norm0.gain" if i == 0 else f"layers.{i - 1}.norm2.gain"
        self.add_vector(to + "attn_norm.weight", self.weights[before])
        self.add_vector(to + "ffn_norm.weight", self.weights[at + "norm1.gain"])
        keys = width // self.heads * self.key_heads
        begin = 0
        for part, rows in (("q", width), ("k", keys), ("v", keys)):
            self.add_rows(f"{to}attn_{part}.weight", at + "qkv", begin, begin + rows)
            self.add_vector(f"{to}attn_{part}.bias", self.weights[at + "qkv.bias"][begin : begin + rows])
            begin += rows
        for name, own in (("attn_output", "out"), ("ffn_gate", "gate"), ("ffn_up", "up"), ("ffn_down", "down")):
            self.add_rows(f"{to}{name}.weight", at + own, 0, None)

    def add_vector(self, name: str, vector: Any) -> None:
        self.writer.add_tensor(name, vector)

    def product(self, name: str) -> tuple[Any, Any]:
        """Scales [rows, blocks] and numbers [rows, blocks, 32]; floats [rows, depth] alone, transposed, for 32 bits."""
        import numpy as np

        if self.bits == 32:
            return None, np.ascontiguousarray(self.weights[name + ".weight"].T)
        packed = self.weights[name + ".packed"]
        rows, blocks = packed.shape[:2]
        numbers = packed if self.bits == 8 else np.stack([packed & 15, packed >> 4], axis=-1).reshape(rows, blocks, 32)
        return self.weights[name + ".scales"].reshape(rows, blocks), numbers

    def add_rows(self, name: str, product: str, begin: int, end: int | None) -> None:
        import numpy as np

        scales, numbers = self.product(product)
        numbers = numbers[begin:end]
        if self.bits == 32:
            self.writer.add_tensor(name, numbers)
            return
        steps = scales[begin:end].astype(np.float16)[..., None].view(np.uint8)
        if self.bits == 8:
            stored = (numbers.astype(np.int16) - 128).astype(np.int8).view(np.uint8)
        else:
            stored = numbers[..., :16] | numbers[..., 16:] << 4
        rows = np.concatenate([steps, stored], axis=-1).reshape(len(numbers), -1)
        self.writer.add_tensor(name, rows, raw_dtype=self.format)


def write_gguf(model: Path, bits: int) -> Path:
    file = model.with_suffix(".gguf")
    GgufWriter(model, bits, file).write()
    return file


def run_llama_cpp(arguments: argparse.Namespace, model: str) -> None:
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = model
    parameters.n_ctx = ROOM
    parameters.n_parallel = 1
    parameters.n_gpu_layers = 0
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = arguments.threads
    server = xllamacpp.Server(parameters)
    request = {"prompt": prompt_of(arguments), "n_predict": arguments.tokens, "ignore_eos": True, "cache_prompt": False}
    firsts, tokens = [], []
    for _ in range(3):
        answer = server.handle_completions({**request, "temperature": 0})
        timings = (answer if isinstance(answer, dict) else json.loads(answer))["timings"]
        firsts.append(timings["prompt_ms"] / 1e3)
        tokens.append(timings["predicted_per_token_ms"] / 1e3)
    print_times(firsts, tokens)
