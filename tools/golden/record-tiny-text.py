"""Makes five graphs of one tiny random model: with GroupQueryAttention and shared buffers, as onnxruntime-genai's builder lays it
out, its caches in float32 and in float16; the same two as tools/export does, with an empty sequence as the first output; and in the
plain layout with ONNX's Softmax, as Optimum does. Records what transformers writes with the same weights.

    pip install transformers==5.23.0 torch==2.15.0 onnx==1.23.2 tokenizers==0.23.3
    python tools/golden/record-tiny-text.py
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
TARGET = ROOT / "tools/golden/vectors/text"
VOCABULARY, WIDTH, HEADS, KEYS, HEAD, LAYERS, INNER, ROOM = 64, 32, 4, 2, 16, 2, 48, 512


def tokenizer():
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
    vocabulary = {"<end>": 0, **{letter: at + 1 for at, letter in enumerate(letters)}, "Ġ": 63}
    made = Tokenizer(BPE(vocabulary, []))
    made.add_special_tokens([AddedToken("<end>", normalized=False, special=True)])
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    made.decoder = decoders.ByteLevel()
    return made


def graph_of(state, is_plain, stops_copies=False, is_half=False):
    nodes, tensors, counter = [], [], [0]

    def const(name, array):
        if any(tensor.name == name for tensor in tensors):
            return name
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
    angles = np.outer(np.arange(ROOM), 10000.0 ** (-np.arange(0, HEAD, 2) / HEAD)).astype(np.float32)

    def prepare_shared():
        lengths = op("ReduceSum", ["attention_mask", one], keepdims=0)
        seqlens = op("Cast", [op("Sub", [lengths, one])], to=TensorProto.INT32)
        total = op("Gather", [op("Shape", ["attention_mask"]), const("axis", np.array(1, np.int64))])
        total = op("Cast", [total], to=TensorProto.INT32)
        return [seqlens, total, const("cos", np.cos(angles)), const("sin", np.sin(angles))]

    def attend_shared(layer, q, k, v, past, present):
        lengths, tables = prepared[:2], prepared[2:]
        if is_half:
            q, k, v, *tables = (op("Cast", [each], to=TensorProto.FLOAT16) for each in (q, k, v, *tables))
        inputs = [q, k, v, *past, *lengths, *tables]
        names = [f"attention_{layer}", *present]
        y = op("GroupQueryAttention", inputs, names, domain="com.microsoft", num_heads=HEADS, kv_num_heads=KEYS, do_rotary=1)
        return op("Cast", [y], to=TensorProto.FLOAT) if is_half else y

    def prepare_plain():
        side = lambda table, name: op("Unsqueeze", [op("Gather", [const(name, np.concatenate([table] * 2, 1)), "position_ids"]), one])
        new = op("Shape", ["input_ids"], start=1, end=2)
        total = op("Shape", ["attention_mask"], start=1, end=2)
        empty = const("empty", np.array([], np.int64))
        columns = op("Range", [const("zero", np.array(0)), op("Reshape", [total, empty]), const("step", np.array(1))])
        first = op("Sub", [total, new])
        rows = op("Range", [op("Reshape", [first, empty]), op("Reshape", [total, empty]), "step"])
        seen = op("LessOrEqual", [op("Unsqueeze", [columns, const("axis_first", np.array([0]))]), op("Unsqueeze", [rows, one])])
        mask = op("Unsqueeze", [op("Cast", ["attention_mask"], to=TensorProto.BOOL), const("axes_12", np.array([1, 2]))])
        bias = op("Where", [op("And", [mask, seen]), const("none", np.float32(0)), const("much", np.float32(-1e9))])
        return [side(np.cos(angles), "cos"), side(np.sin(angles), "sin"), bias]

    def attend_plain(layer, q, k, v, past, present):
        cos, sin, bias = prepared
        split = lambda x, count: op("Transpose", [op("Reshape", [x, const(f"heads_{count}", np.array([0, 0, count, HEAD]))])], perm=[0, 2, 1, 3])
        halves = const("halves", np.array([HEAD // 2] * 2))

        def rotate(x):
            counter[0] += 1
            left, right = f"left_{counter[0]}", f"right_{counter[0]}"
            op("Split", [x, halves], [left, right], axis=-1)
            turned = op("Concat", [op("Neg", [right]), left], axis=-1)
            return op("Add", [op("Mul", [x, cos]), op("Mul", [turned, sin])])

        def repeat(x):
            wide = op("Unsqueeze", [x, const("axis_2", np.array([2]))])
            wide = op("Tile", [wide, const("groups", np.array([1, 1, HEADS // KEYS, 1, 1]))])
            return op("Reshape", [wide, const("all_heads", np.array([0, HEADS, -1, HEAD]))])

        k = op("Concat", [past[0], rotate(split(k, KEYS))], present[0], axis=2)
        v = op("Concat", [past[1], split(v, KEYS)], present[1], axis=2)
        scores = op("MatMul", [rotate(split(q, HEADS)), op("Transpose", [repeat(k)], perm=[0, 1, 3, 2])])
        scores = op("Add", [op("Mul", [scores, const("scale", np.float32(HEAD**-0.5))]), bias])
        y = op("MatMul", [op("Softmax", [scores], axis=-1), repeat(v)])
        return op("Reshape", [op("Transpose", [y], perm=[0, 2, 1, 3]), const("joined", np.array([0, 0, HEADS * HEAD]))])

    prepared = prepare_plain() if is_plain else prepare_shared()
    attend = attend_plain if is_plain else attend_shared
    x = op("Gather", [const("embed", weights["model.embed_tokens.weight"]), "input_ids"])
    for layer in range(LAYERS):
        at = f"model.layers.{layer}."
        y = norm(x, at + "input_layernorm.weight")
        q, k, v = (linear(y, f"{at}self_attn.{part}_proj.weight") for part in "qkv")
        past = [f"past_key_values.{layer}.key", f"past_key_values.{layer}.value"]
        present = [f"present.{layer}.key", f"present.{layer}.value"]
        y = attend(layer, q, k, v, past, present)
        x = op("Add", [x, linear(y, at + "self_attn.o_proj.weight")])
        y = norm(x, at + "post_attention_layernorm.weight")
        gate = linear(y, at + "mlp.gate_proj.weight")
        gate = op("Mul", [gate, op("Sigmoid", [gate])])
        x = op("Add", [x, linear(op("Mul", [gate, linear(y, at + "mlp.up_proj.weight")]), at + "mlp.down_proj.weight")])
    if not is_plain:
        # Logits of the last positions only, as newer exports can.
        end = const("end", np.array([2**31], np.int64))
        x = op("Slice", [x, op("Neg", [op("Unsqueeze", ["num_logits_to_keep", const("axis_0", np.array([0]))])]), end, one])
    x = norm(x, "model.norm.weight")
    has_half_logits = is_half and stops_copies
    x = op("MatMul", [x, const("head", weights["model.embed_tokens.weight"].T)], None if has_half_logits else "logits")
    if has_half_logits:
        op("Cast", [x], "logits", to=TensorProto.FLOAT16)
    value = helper.make_tensor_value_info
    inputs = [
        value("input_ids", TensorProto.INT64, ["batch_size", "sequence_length"]),
        value("attention_mask", TensorProto.INT64, ["batch_size", "total_sequence_length"]),
        value("position_ids", TensorProto.INT64, ["batch_size", "sequence_length"])
        if is_plain
        else value("num_logits_to_keep", TensorProto.INT64, []),
    ]
    outputs = [value("logits", TensorProto.FLOAT16 if has_half_logits else TensorProto.FLOAT, ["batch_size", "kept_length", VOCABULARY])]
    if stops_copies:
        op("SequenceEmpty", [], "copies_end_here")
        outputs.insert(0, helper.make_tensor_sequence_value_info("copies_end_here", TensorProto.FLOAT, None))
    cache_type = TensorProto.FLOAT16 if is_half else TensorProto.FLOAT
    # All keys before all values, as some exporters have it.
    for part in ("key", "value"):
        for layer in range(LAYERS):
            sides = lambda length: ["batch_size", KEYS, length, HEAD]
            inputs.append(value(f"past_key_values.{layer}.{part}", cache_type, sides("past_sequence_length")))
            outputs.append(value(f"present.{layer}.{part}", cache_type, sides("total_sequence_length")))
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
    kinds = {
        "group-query": {"is_plain": False},
        "group-query-half": {"is_plain": False, "is_half": True},
        "group-query-half-uncopied": {"is_plain": False, "is_half": True, "stops_copies": True},
        "group-query-uncopied": {"is_plain": False, "stops_copies": True},
        "plain": {"is_plain": True},
    }
    for folder, kind in kinds.items():
        (TARGET / folder / "onnx").mkdir(parents=True, exist_ok=True)
        onnx.save(graph_of(model.state_dict(), **kind), str(TARGET / folder / "onnx/model.onnx"))
        (TARGET / folder / "config.json").write_text(json.dumps({"model_type": "llama", **fields}, indent=2) + "\n")
        definition = json.dumps(json.loads(tokenizer().to_str()), separators=(",", ":"))
        (TARGET / folder / "tokenizer.json").write_text(definition + "\n")
    generator = np.random.default_rng(7)
    cases = []
    for length in (1, 2, 5, 17, 40, 90, 200):
        prompt = generator.integers(1, VOCABULARY, length).tolist()
        with torch.no_grad():
            out = model.generate(torch.tensor([prompt]), do_sample=False, max_new_tokens=24, eos_token_id=0, pad_token_id=0)
        cases.append({"prompt": prompt, "tokens": out[0, length:].tolist()})
    (TARGET / "tiny-greedy.json").write_text(json.dumps({"cases": cases}, separators=(",", ":")) + "\n")


main()
