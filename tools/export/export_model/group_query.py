"""A causal language model as one graph with GroupQueryAttention, whose caches are written in place.

For models that are made as llama is: a norm before attention and one before the gated product, and nothing after them.
The layout is that of onnxruntime-genai's exports, with an empty sequence as the first output: onnxruntime-node 1.30
copies each output of a call, the caches too, and stops at the first that is no tensor.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch
from onnx import TensorProto, helper
from torch import nn
from transformers.modeling_utils import PreTrainedModel

from export_model.graph_writer import GraphWriter
from export_model.products import FloatProducts, Product, Products, hadamard, turn_outputs

_FAMILIES = ("llama", "qwen2", "qwen3")
_LARGEST_DIFFERENCE = 1e-3
"""Of the graph's logits to those of torch, of the largest there is."""


def is_llama_like(model: PreTrainedModel) -> bool:
    """Whether `write_group_query` can write it."""
    config = model.config
    return (
        config.model_type in _FAMILIES
        and getattr(config, "hidden_act", None) == "silu"
        and getattr(config, "sliding_window", None) is None
    )


def write_group_query(model: PreTrainedModel, file: Path, products: Products) -> None:
    """Writes the graph.

    Raises:
        SystemExit: it is in float, and ONNX Runtime and torch differ.
    """
    _Decoder(model, products).write(file)
    if isinstance(products, FloatProducts):
        _compare(model, file)


@dataclass
class _Stream:
    """The residual stream: its sum so far, and what is to be added."""

    rows: str
    more: str | None = None


class _Decoder:
    def __init__(self, model: PreTrainedModel, products: Products) -> None:
        self._model = model
        self._config = model.config
        self._products = products
        self._writer = GraphWriter()
        config = self._config
        self._hidden = config.hidden_size
        self._heads = config.num_attention_heads
        self._keys = getattr(config, "num_key_value_heads", None) or self._heads
        self._width = getattr(config, "head_dim", None) or self._hidden // self._heads
        self._turn = hadamard(self._hidden) if products.turns else np.eye(self._hidden)

    def write(self, file: Path) -> None:
        writer, model = self._writer, self._model.model
        table = _numbers(model.embed_tokens.weight)
        rows = self._products.table(writer, "table", table @ self._turn if self._products.turns else table, "input_ids")
        stream = _Stream(writer.op("Reshape", [rows, writer.whole(-1, self._hidden)]))
        lengths = self._prepare_lengths()
        for number, layer in enumerate(model.layers):
            stream.more = self._attend(number, layer, self._norm(stream, layer.input_layernorm), lengths)
            rows = self._norm(stream, layer.post_attention_layernorm)
            stream.more = self._feed(f"layer_{number}", layer, rows)
        self._write_logits(self._norm(stream, model.norm))
        writer.op("SequenceEmpty", [], ["copies_end_here"])
        writer.save(file, *self._tensors())

    def _prepare_lengths(self) -> list[str]:
        """What GroupQueryAttention is told of lengths and angles."""
        writer = self._writer
        one = writer.whole(1)
        last = writer.op("Sub", [writer.op("ReduceSum", ["attention_mask", one], keepdims=0), one])
        total = writer.op("Gather", [writer.op("Shape", ["attention_mask"]), writer.constant("second", np.int64(1))])
        places = torch.arange(self._config.max_position_embeddings)[None]
        with torch.no_grad():
            angles = self._model.model.rotary_emb(torch.zeros(1, 1), places)
        tables = zip(("cosines", "sines"), angles, strict=True)
        return [
            writer.op("Cast", [last], to=TensorProto.INT32),
            writer.op("Cast", [total], to=TensorProto.INT32),
            *(writer.constant(name, table[0, :, : self._width // 2].numpy()) for name, table in tables),
        ]

    def _norm(self, stream: _Stream, norm: nn.Module) -> str:
        """The norm of the stream. Where it is turned, the norm's weights are in the matrices that come after it."""
        writer = self._writer
        weights = np.ones(self._hidden) if self._products.turns else _numbers(norm.weight)
        name = "ones" if self._products.turns else f"norm_{stream.more or 0}"
        weights = writer.constant(name, weights.astype(np.float32))
        epsilon = norm.variance_epsilon
        if stream.more is None:
            return writer.op("SimplifiedLayerNormalization", [stream.rows, weights], axis=-1, epsilon=epsilon)
        outputs = [f"normed_{stream.more}", "", "", f"stream_{stream.more}"]
        inputs = [stream.rows, stream.more, weights]
        stream.rows = outputs[-1]
        return writer.op("ms.SkipSimplifiedLayerNormalization", inputs, outputs, epsilon=epsilon)

    def _attend(self, number: int, layer: nn.Module, rows: str, lengths: list[str]) -> str:
        writer, attention = self._writer, layer.self_attn
        parts = (attention.q_proj, attention.k_proj, attention.v_proj)
        weights = [self._after(layer.input_layernorm, part.weight) for part in parts]
        biases = [] if parts[0].bias is None else [_numbers(part.bias) for part in parts]
        if self._products.turns:
            # What attention gives of a head is a sum of its values: as they are turned, so is it.
            for values in (weights, biases):
                values[2:] = [turn_outputs(each, self._width) for each in values[2:]]
        weight = np.concatenate(weights)
        (joined,) = self._products.multiply(writer, rows, [Product(f"layer_{number}_qkv", weight)])
        if biases:
            bias = np.concatenate(biases).astype(np.float32)
            joined = writer.op("Add", [joined, writer.constant(f"layer_{number}_qkv_bias", bias)])
        sides = writer.op("Concat", [writer.op("Shape", ["input_ids"]), writer.whole(-1)], axis=0)
        joined = writer.op("Reshape", [joined, sides])
        three = [joined, "", ""]
        if hasattr(attention, "q_norm"):
            three = self._norm_heads(number, attention, joined, sides)
        past, present = (
            [f"{name}.{number}.{part}" for part in ("key", "value")] for name in ("past_key_values", "present")
        )
        sizes = {"num_heads": self._heads, "kv_num_heads": self._keys}
        outputs = [f"attended_{number}", *present]
        mixed = writer.op("ms.GroupQueryAttention", [*three, *past, *lengths], outputs, do_rotary=1, **sizes)
        mixed = writer.op("Reshape", [mixed, writer.whole(-1, self._heads * self._width)])
        product = self._back(f"layer_{number}_o", attention.o_proj)
        return self._products.multiply_heads(writer, mixed, product, self._width)

    def _norm_heads(self, number: int, attention: nn.Module, joined: str, sides: str) -> list[str]:
        """Queries and keys, each head of them with a norm of its own; values."""
        writer = self._writer
        counts = [self._heads, self._keys, self._keys]
        names = [f"{part}_{number}" for part in "qkv"]
        writer.op("Split", [joined, writer.whole(*(count * self._width for count in counts))], names, axis=-1)
        for at, norm in enumerate((attention.q_norm, attention.k_norm)):
            heads = writer.op("Reshape", [names[at], writer.whole(0, 0, -1, self._width)])
            weights = writer.constant(f"{names[at]}_norm", _numbers(norm.weight).astype(np.float32))
            attributes = {"axis": -1, "epsilon": norm.variance_epsilon}
            heads = writer.op("SimplifiedLayerNormalization", [heads, weights], **attributes)
            names[at] = writer.op("Reshape", [heads, sides])
        return names

    def _feed(self, name: str, layer: nn.Module, rows: str) -> str:
        """The gated product."""
        writer, inner = self._writer, layer.mlp
        norm = layer.post_attention_layernorm
        pair = {"gate": inner.gate_proj, "up": inner.up_proj}
        matrices = [Product(f"{name}_{part}", self._after(norm, each.weight)) for part, each in pair.items()]
        gate, up = self._products.multiply(writer, rows, matrices)
        # With alpha 1 it is x · sigmoid(x).
        rows = writer.op("Mul", [writer.op("ms.QuickGelu", [gate], alpha=1.0), up])
        return self._products.multiply_inner(writer, rows, self._back(f"{name}_down", inner.down_proj))

    def _back(self, name: str, linear: nn.Linear) -> Product:
        """Into the stream."""
        weight = _numbers(linear.weight)
        return Product(name, self._turn.T @ weight if self._products.turns else weight)

    def _after(self, norm: nn.Module, weight: torch.Tensor) -> np.ndarray:
        """A matrix that reads the stream after a norm."""
        numbers = _numbers(weight)
        return (numbers * _numbers(norm.weight)) @ self._turn if self._products.turns else numbers

    def _write_logits(self, rows: str) -> None:
        """Those of the last positions: as in transformers, 0 is all."""
        writer = self._writer
        sides = writer.op("Concat", [writer.op("Shape", ["input_ids"]), writer.whole(self._hidden)], axis=0)
        rows = writer.op("Reshape", [rows, sides])
        first = writer.op("Neg", [writer.op("Unsqueeze", ["num_logits_to_keep", writer.whole(0)])])
        rows = writer.op("Slice", [rows, first, writer.whole(2**31), writer.whole(1)])
        head = self._model.lm_head.weight
        sides = writer.op("Concat", [writer.op("Shape", [rows], start=0, end=2), writer.whole(len(head))], axis=0)
        rows = writer.op("Reshape", [rows, writer.whole(-1, self._hidden)])
        is_tied = head.data_ptr() == self._model.model.embed_tokens.weight.data_ptr()
        name = "table" if is_tied and isinstance(self._products, FloatProducts) else "head"
        product = Product(name, self._after(self._model.model.norm, head))
        writer.op("Reshape", [self._products.multiply_last(writer, rows, product), sides], ["logits"])

    def _tensors(self) -> tuple[list[onnx.ValueInfoProto], list[onnx.ValueInfoProto]]:
        tensor, whole = helper.make_tensor_value_info, TensorProto.INT64
        count = len(self._model.lm_head.weight)
        inputs = [
            tensor("input_ids", whole, ["batch_size", "sequence_length"]),
            tensor("attention_mask", whole, ["batch_size", "total_sequence_length"]),
            tensor("num_logits_to_keep", whole, []),
        ]
        outputs = [
            helper.make_tensor_sequence_value_info("copies_end_here", TensorProto.FLOAT, None),
            tensor("logits", TensorProto.FLOAT, ["batch_size", "num_logits", count]),
        ]
        for number in range(self._config.num_hidden_layers):
            for part in ("key", "value"):
                past, present = (
                    ["batch_size", self._keys, f"{name}_sequence_length", self._width] for name in ("past", "present")
                )
                inputs.append(tensor(f"past_key_values.{number}.{part}", TensorProto.FLOAT, past))
                outputs.append(tensor(f"present.{number}.{part}", TensorProto.FLOAT, present))
        return inputs, outputs


def _numbers(weight: torch.Tensor) -> np.ndarray:
    return weight.detach().double().numpy()


def _compare(model: PreTrainedModel, file: Path) -> None:
    """A text read in two pieces, with the same read by the model itself."""
    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    past = {value.name: value.shape for value in session.get_inputs() if value.name.startswith("past")}
    names = [value.name for value in session.get_outputs()][1:]
    text = np.random.default_rng(0).integers(model.config.vocab_size, size=(1, 12))
    feeds = {name: np.zeros((1, shape[1], 0, shape[3]), np.float32) for name, shape in past.items()}
    for begin, end in ((0, 8), (8, 12)):
        feeds |= {"input_ids": text[:, begin:end], "attention_mask": np.ones((1, end), np.int64)}
        logits, *present = session.run(names, {**feeds, "num_logits_to_keep": np.array(3)})
        feeds |= dict(zip(past, present, strict=True))
    with torch.no_grad():
        expected = model(torch.from_numpy(text)).logits[:, -3:].numpy()
    difference = float(np.abs(logits - expected).max() / np.abs(expected).max())
    if not difference < _LARGEST_DIFFERENCE:
        raise SystemExit(f"{file}: logits differ from torch's by {difference:.1e} of the largest")
