"""A causal language model as one graph in the decoder layout of Optimum and transformers.js.

Attention is written so that the bits of a row depend on nothing but its own tokens: in any company, and however long
the others are. Three things see to that.

- Keys and values are put in the order of their positions, without the gap that a batch leaves between what a short row
  had and what it gets. A product adds up in blocks of columns, so a number that stands elsewhere can round otherwise.
- The sum of the softmax comes from a column of ones beside the values: it is added up in the same order as they are.
  ONNX's Softmax adds in lanes.
- The query heads that share keys are rows of one product, at least two of them: a product of one row is computed by
  other code than one of many.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch
from onnx import helper
from torch import nn
from transformers import AttentionInterface
from transformers.cache_utils import Cache
from transformers.modeling_utils import PreTrainedModel

_OPSET = 18
_NAME = "darkroom"
_HIDDEN = -1e9
_LARGEST_DIFFERENCE = 1e-3
"""Of the graph's logits to those of torch, of the largest there is."""


class _Past(Cache):
    """The keys and values that a call is given, and after it those that it gives, in the order of the columns."""

    def __init__(self, tensors: Sequence[torch.Tensor], lines: torch.Tensor, width: int) -> None:
        self.layers = []
        self.given = tensors
        self.present: list[torch.Tensor] = []
        self._lines = lines
        self._width = width

    def get_seq_length(self, layer_idx: int = 0) -> int:
        return self.given[0].shape[2]

    def update(
        self, key: torch.Tensor, value: torch.Tensor, layer: int, _: dict | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        both = [torch.cat([past, new], 2) for past, new in zip(self.given[2 * layer :], (key, value), strict=False)]
        self.present += both
        return self._in_order(both[0]), self._in_order(both[1])

    def _in_order(self, tensor: torch.Tensor) -> torch.Tensor:
        """`[rows, heads, columns, width]`, whose columns are put in the order of their rows."""
        return torch.nn.functional.embedding(self._lines, tensor.reshape(-1, self._width))


class Decoder(nn.Module):
    """Arguments and results are those of the graph."""

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__()
        self.model = model
        config = model.config
        _, self._heads, self._width = _cache_shape(model)
        self._window = getattr(config, "sliding_window", None)
        kinds = getattr(config, "layer_types", None)
        self._kinds = sorted(set(kinds)) if kinds else None

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        position_ids: torch.Tensor,
        num_logits_to_keep: torch.Tensor,
        *past: torch.Tensor,
    ) -> tuple[torch.Tensor, ...]:
        """Logits of the last positions, then all keys and values."""
        width = input_ids.shape[1]
        rows = torch.arange(input_ids.shape[0] * self._heads).reshape(-1, self._heads, 1) * attention_mask.shape[1]
        cache = _Past(past, rows + _order_of(attention_mask)[:, None], self._width)
        # In that order a token's column is its position.
        columns = torch.arange(attention_mask.shape[1])[None, None, None]
        count = attention_mask.sum(1)[:, None, None, None]
        last = torch.minimum(position_ids[:, None, :, None], count - 1)
        outputs = self.model(
            input_ids=input_ids,
            attention_mask=self._masks(columns, last),
            position_ids=position_ids,
            past_key_values=cache,
            use_cache=True,
            # As in transformers, 0 is all.
            logits_to_keep=torch.arange(torch.where(num_logits_to_keep == 0, 0, width - num_logits_to_keep), width),
        )
        return outputs.logits, *cache.present

    def _masks(self, columns: torch.Tensor, last: torch.Tensor) -> torch.Tensor | dict[str, torch.Tensor]:
        seen = columns <= last
        masks = {"full_attention": seen}
        if self._window is not None:
            masks["sliding_attention"] = seen & (columns > last - self._window)
        masks = {name: torch.where(mask, 0.0, _HIDDEN) for name, mask in masks.items()}
        if self._kinds is None:
            return masks["full_attention" if self._window is None else "sliding_attention"]
        return {kind: masks[kind] for kind in self._kinds}


def _order_of(attention_mask: torch.Tensor) -> torch.Tensor:
    """For each row its columns, those that count first: `[rows, columns]`."""
    columns = attention_mask.shape[1]
    place = torch.arange(columns)[None]
    counts = attention_mask == 1
    first = attention_mask.cumsum(1) - 1
    rest = attention_mask.sum(1, keepdim=True) + (1 - attention_mask).cumsum(1) - 1
    return torch.zeros_like(attention_mask).scatter(1, torch.where(counts, first, rest), place.expand_as(counts))


def _attend(  # noqa: PLR0913, PLR0917 - as transformers calls it
    module: nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor,
    scaling: float,
    **_: object,
) -> tuple[torch.Tensor, None]:
    # Of one tensor that all layers share: what is computed of it is computed once.
    rows, _, length, columns = attention_mask.shape
    width, group = module.head_dim, module.num_key_value_groups
    heads = module.config.num_attention_heads
    shared = heads // group
    query = (query * scaling).reshape(rows, shared, group * length, width)
    twice = group == 1
    if twice:
        query = torch.cat([query, query], 2)
        group = 2
    scores = query @ key.transpose(2, 3)
    scores = scores.reshape(rows, shared, group, length, columns) + attention_mask[:, None]
    powers = torch.exp(scores - scores.amax(-1, keepdim=True)).reshape(rows, shared, group * length, columns)
    sums = powers @ torch.cat([value, torch.ones((rows, shared, columns, 1))], -1)
    mixed = sums[..., :width] / sums[..., width:]
    if twice:
        mixed = mixed[:, :, :length]
    return mixed.reshape(rows, heads, length, width).transpose(1, 2), None


AttentionInterface.register(_NAME, _attend)


def export_decoder(model: PreTrainedModel, file: Path) -> None:
    """Writes the graph in fp32, and compares it with torch.

    Raises:
        SystemExit: ONNX Runtime and torch differ.
    """
    shape = _cache_shape(model)
    names = [f"{layer}.{part}" for layer in range(shape[0]) for part in ("key", "value")]
    past, present = [f"past_key_values.{name}" for name in names], [f"present.{name}" for name in names]
    inputs = ["input_ids", "attention_mask", "position_ids", "num_logits_to_keep", *past]
    axes = {
        "input_ids": {0: "batch_size", 1: "sequence_length"},
        "position_ids": {0: "batch_size", 1: "sequence_length"},
        "attention_mask": {0: "batch_size", 1: "total_sequence_length"},
        "logits": {0: "batch_size", 1: "num_logits"},
        **{name: {0: "batch_size", 2: "past_sequence_length"} for name in past},
        **{name: {0: "batch_size", 2: "total_sequence_length"} for name in present},
    }
    example = _example(model, [5, 3], 4)
    model.set_attn_implementation(_NAME)
    with torch.no_grad():
        torch.onnx.export(
            Decoder(model),
            tuple(example.values()),
            str(file),
            input_names=inputs,
            output_names=["logits", *present],
            dynamic_axes=axes,
            opset_version=_OPSET,
            dynamo=False,
        )
    model.set_attn_implementation("eager")
    _compare(model, file)


def _cache_shape(model: PreTrainedModel) -> tuple[int, int, int]:
    """Layers, heads of keys, and numbers of a key."""
    config = model.config
    heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    return config.num_hidden_layers, heads, width


def _example(model: PreTrainedModel, lengths: Sequence[int], width: int) -> dict[str, torch.Tensor]:
    """Rows with `lengths` tokens behind them, padded on the right, that read `width` more; the caches are noise."""
    layers, heads, size = _cache_shape(model)
    generator = torch.Generator().manual_seed(len(lengths))
    rows, past = len(lengths), max(lengths)
    behind = (torch.arange(past)[None] < torch.tensor(lengths)[:, None]).long()
    example = {
        "input_ids": torch.randint(model.config.vocab_size, (rows, width), generator=generator),
        "attention_mask": torch.cat([behind, torch.ones(rows, width, dtype=torch.long)], 1),
        "position_ids": torch.tensor(lengths)[:, None] + torch.arange(width)[None],
        "num_logits_to_keep": torch.tensor(2),
    }
    for layer in range(layers):
        for part in ("key", "value"):
            noise = torch.randn(rows, heads, past, size, generator=generator)
            example[f"past_key_values.{layer}.{part}"] = noise
    return example


def _compare(model: PreTrainedModel, file: Path) -> None:
    """Three texts read in a batch, in two pieces with a gap between them, with each read alone by the model itself."""
    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    layers, heads, size = _cache_shape(model)
    vocabulary = model.config.vocab_size
    texts = np.random.default_rng(0).integers(vocabulary, size=(3, 12))
    lengths = np.array([8, 3, 5])
    empty = np.zeros((3, heads, 0, size), np.float32)
    names = [f"past_key_values.{layer}.{part}" for layer in range(layers) for part in ("key", "value")]
    read = np.arange(8)[None] < lengths[:, None]
    feeds = {"input_ids": texts[:, :8], "attention_mask": read.astype(np.int64)}
    feeds["position_ids"] = np.arange(8)[None].repeat(3, 0)
    feeds["num_logits_to_keep"] = np.array(1)
    _, *present = session.run(None, {**feeds, **dict.fromkeys(names, empty)})
    more = np.array([texts[row, length : length + 4] for row, length in enumerate(lengths)])
    feeds = {"input_ids": more, "position_ids": lengths[:, None] + np.arange(4), "num_logits_to_keep": np.array(3)}
    feeds["attention_mask"] = np.concatenate([read, np.ones((3, 4), bool)], 1).astype(np.int64)
    logits, *_ = session.run(None, {**feeds, **dict(zip(names, present, strict=True))})
    for row, length in enumerate(lengths):
        with torch.no_grad():
            expected = model(torch.tensor(texts[row : row + 1, : length + 4])).logits[0, length + 1 :].numpy()
        difference = float(np.abs(logits[row] - expected).max() / np.abs(expected).max())
        if not difference < _LARGEST_DIFFERENCE:
            raise SystemExit(f"{file}: logits differ from torch's by {difference:.1e} of the largest")


def tie_table(file: Path) -> None:
    """Where the last product has the table of embeddings, it is written once, and turned when the graph is loaded."""
    model = onnx.load(file)
    graph = model.graph
    tables = {node.input[0] for node in graph.node if node.op_type == "Gather"}
    weights = {weight.name: weight for weight in graph.initializer}
    product = next(node for node in graph.node if "logits" in node.output)
    turned = weights.get(product.input[1]) if product.op_type == "MatMul" else None
    for name in tables & weights.keys() if turned is not None else ():
        table = weights[name]
        if list(table.dims) != list(turned.dims)[::-1]:
            continue
        if np.array_equal(onnx.numpy_helper.to_array(table), onnx.numpy_helper.to_array(turned).T):
            graph.initializer.remove(turned)
            nodes = [helper.make_node("Transpose", [name], [turned.name], name="turn_table", perm=[1, 0]), *graph.node]
            graph.ClearField("node")
            graph.node.extend(nodes)
            onnx.save(model, file)
            return
