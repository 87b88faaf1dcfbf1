"""Makes a tiny random model whose graph has GroupQueryAttention with shared buffers, as onnxruntime-genai's builder lays it out,
and records what transformers writes with the same weights.

    pip install transformers==5.23.0 torch==2.15.0 onnx==1.23.2 tokenizers==0.23.3
    python tools/golden/record-group-query.py
"""

import json
import pathlib

import numpy as np
import onnx
import torch
import transformers
from onnx import TensorProto, helper, numpy_helper
from tokenizers import AddedToken, Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGET = ROOT / "tools/golden/vectors/text/group-query"
VOCABULARY, WIDTH, HEADS, KEYS, HEAD, LAYERS, INNER, ROOM = 64, 32, 4, 2, 16, 2, 48, 512


def tokenizer():
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
    vocabulary = {"<end>": 0, **{letter: at + 1 for at, letter in enumerate(letters)}, "Ġ": 63}
    made = Tokenizer(BPE(vocabulary, []))
    made.add_special_tokens([AddedToken("<end>", normalized=False, special=True)])
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    made.decoder = decoders.ByteLevel()
    return made


def graph_of(state):
    nodes, tensors, counter = [], [], [0]

    def const(name, array):
        tensors.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def op(kind, inputs, name=None, outputs=1, **attributes):
        counter[0] += 1
        names = name if isinstance(name, list) else [name or f"{kind}_{counter[0]}"]
        nodes.append(helper.make_node(kind, inputs, names, **attributes))
        return names[0]

    weights = {name: value.numpy() for name, value in state.items()}
    linear = lambda x, name: op("MatMul", [x, const(name, weights[name].T)])
    norm = lambda x, name: op("SimplifiedLayerNormalization", [x, const(name, weights[name])], axis=-1, epsilon=1e-5)
    one = const("one", np.array([1], np.int64))
    lengths = op("ReduceSum", ["attention_mask", one], keepdims=0)
    seqlens = op("Cast", [op("Sub", [lengths, one])], to=TensorProto.INT32)
    total = op("Gather", [op("Shape", ["attention_mask"]), const("axis", np.array(1, np.int64))])
    total = op("Cast", [total], to=TensorProto.INT32)
    angles = np.outer(np.arange(ROOM), 10000.0 ** (-np.arange(0, HEAD, 2) / HEAD)).astype(np.float32)
    cos, sin = const("cos", np.cos(angles)), const("sin", np.sin(angles))
    x = op("Gather", [const("embed", weights["model.embed_tokens.weight"]), "input_ids"])
    for layer in range(LAYERS):
        at = f"model.layers.{layer}."
        y = norm(x, at + "input_layernorm.weight")
        q, k, v = (linear(y, f"{at}self_attn.{part}_proj.weight") for part in "qkv")
        past = [f"past_key_values.{layer}.key", f"past_key_values.{layer}.value"]
        y = op(
            "GroupQueryAttention",
            [q, k, v, *past, seqlens, total, cos, sin],
            [f"attention_{layer}", f"present.{layer}.key", f"present.{layer}.value"],
            domain="com.microsoft",
            num_heads=HEADS,
            kv_num_heads=KEYS,
            do_rotary=1,
        )
        x = op("Add", [x, linear(y, at + "self_attn.o_proj.weight")])
        y = norm(x, at + "post_attention_layernorm.weight")
        gate = linear(y, at + "mlp.gate_proj.weight")
        gate = op("Mul", [gate, op("Sigmoid", [gate])])
        x = op("Add", [x, linear(op("Mul", [gate, linear(y, at + "mlp.up_proj.weight")]), at + "mlp.down_proj.weight")])
    # Logits of the last positions only, as newer exports can.
    end = const("end", np.array([2**31], np.int64))
    x = op("Slice", [x, op("Neg", [op("Unsqueeze", ["num_logits_to_keep", const("axis_0", np.array([0]))])]), end, one])
    x = norm(x, "model.norm.weight")
    op("MatMul", [x, const("head", weights["model.embed_tokens.weight"].T)], "logits")
    value = helper.make_tensor_value_info
    inputs = [
        value("input_ids", TensorProto.INT64, ["batch_size", "sequence_length"]),
        value("attention_mask", TensorProto.INT64, ["batch_size", "total_sequence_length"]),
        value("num_logits_to_keep", TensorProto.INT64, []),
    ]
    outputs = [value("logits", TensorProto.FLOAT, ["batch_size", "kept_length", VOCABULARY])]
    # All keys before all values, as some exporters have it.
    for part in ("key", "value"):
        for layer in range(LAYERS):
            sides = lambda length: ["batch_size", KEYS, length, HEAD]
            inputs.append(value(f"past_key_values.{layer}.{part}", TensorProto.FLOAT, sides("past_sequence_length")))
            outputs.append(value(f"present.{layer}.{part}", TensorProto.FLOAT, sides("total_sequence_length")))
    graph = helper.make_graph(nodes, "group_query", inputs, outputs, tensors)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10, producer_name="darkroom")


def main():
    torch.manual_seed(7)
    torch.set_num_threads(1)
    fields = dict(vocab_size=VOCABULARY, hidden_size=WIDTH, intermediate_size=INNER, num_hidden_layers=LAYERS)
    fields |= dict(num_attention_heads=HEADS, num_key_value_heads=KEYS, head_dim=HEAD, rms_norm_eps=1e-5)
    fields |= dict(max_position_embeddings=ROOM, tie_word_embeddings=True, eos_token_id=0, initializer_range=0.35)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**fields)).eval()
    (TARGET / "onnx").mkdir(parents=True, exist_ok=True)
    onnx.save(graph_of(model.state_dict()), str(TARGET / "onnx/model.onnx"))
    (TARGET / "config.json").write_text(json.dumps({"model_type": "llama", **fields}, indent=2) + "\n")
    (TARGET / "tokenizer.json").write_text(json.dumps(json.loads(tokenizer().to_str()), separators=(",", ":")) + "\n")
    generator = np.random.default_rng(7)
    cases = []
    for length in (1, 2, 5, 17, 40, 90, 200):
        prompt = generator.integers(1, VOCABULARY, length).tolist()
        with torch.no_grad():
            out = model.generate(torch.tensor([prompt]), do_sample=False, max_new_tokens=24, eos_token_id=0, pad_token_id=0)
        cases.append({"prompt": prompt, "tokens": out[0, length:].tolist()})
    (TARGET / "greedy.json").write_text(json.dumps({"cases": cases}, separators=(",", ":")) + "\n")


main()
