"""The graph of a denoiser or text encoder with adapters (LoRA) as inputs, beside the one without.

For each product of a layer of attention, `x · W`, the graph has two inputs more, `<layer>.lora_A`
[loras, blocks, in, 16] and `<layer>.lora_B` [loras, 16 · blocks, out], and `lora_rows` says which of them each row of
the batch has: the product becomes `x · W + (x · A) · B`. Weights lie in the file of the graph without.

Why blocks of 16: how ONNX Runtime adds up a product depends on how many columns it has, so that with one product for
all of A a rank that is filled up with zeros, because another row of the batch has a higher one, changed the last bits.
With blocks a row keeps its bits in any company, up to 128 for the rank.

Why not one graph whose inputs have a default: onnxruntime-node feeds no input that is an initializer, too, and two
products and a sum a layer cost each step of those who want none (docs/decisions/2026-11-23-a-graph-beside-the-graph-for-adapters.md).
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROWS = "lora_rows"
"""The input with the adapter of each row, int64 [rows]."""
BLOCK = 16
"""Columns of A that are one product."""
_LEAST_BYTES = 1024
"""Smaller tensors are copied."""
_BLOCKS = ("attentions.", "transformer_blocks.", "encoder.layers.")
"""Layers that published adapters change lie in these; the last are those of CLIP."""
_SOURCE = "darkroom.source"
"""The metadata that says which file's bytes the weights are."""
_SAMPLE = 65536
_COLUMNS = "lora_columns"
"""The shape in which the axes after the second are one."""
_BLOCK_AXIS = "lora_block_axis"


@dataclass(frozen=True)
class Layer:
    """A product with a weight, by the name that the layer has in torch."""

    name: str
    node: onnx.NodeProto
    inputs: int
    outputs: int
    element_type: int


def loras_file(graph: Path) -> Path:
    """Where the graph with adapters lies: unet/model_int8.loras.onnx beside unet/model_int8.onnx."""
    return graph.with_suffix(".loras.onnx")


def write_loras_graph(source: Path) -> int:
    """Writes the graph with adapters beside `source`.

    Returns:
        How many layers take them.

    Raises:
        LookupError: no layer of attention is found by the names of nodes, which torch's exporter gives them.
    """
    model = onnx.load(source, load_external_data=False)
    graph = model.graph
    layers = {layer.node.output[0]: layer for layer in list_layers(graph)}
    if not layers:
        raise LookupError(f"{source}: no layer of attention is found by the names of its nodes")
    nodes = [changed for node in graph.node for changed in _change(node, layers.get(node.output[0]))]
    graph.ClearField("node")
    graph.node.extend(nodes)
    graph.input.append(helper.make_tensor_value_info(ROWS, TensorProto.INT64, ["batch_size"]))
    for layer in layers.values():
        shapes = {"A": ["lora_blocks", layer.inputs, BLOCK], "B": ["lora_rank", layer.outputs]}
        for end, shape in shapes.items():
            value = helper.make_tensor_value_info(f"{layer.name}.lora_{end}", layer.element_type, ["loras", *shape])
            graph.input.append(value)
    shapes = {_COLUMNS: [0, 0, -1], _BLOCK_AXIS: [1]}
    graph.initializer.extend(numpy_helper.from_array(np.array(value), name) for name, value in shapes.items())
    _refer_to(source, graph)
    _shorten_names(graph)
    model.metadata_props.add(key=_SOURCE, value=digest_of(source))
    target = loras_file(source)
    onnx.save(model, target)
    onnx.checker.check_model(str(target))
    return len(layers)


def list_layers(graph: onnx.GraphProto) -> Iterator[Layer]:
    """The products and the convolutions of one pixel with a constant weight, in blocks of attention."""
    weights = {weight.name: weight for weight in graph.initializer}
    makers = {name: node for node in graph.node for name in node.output}
    for node in graph.node:
        name = ".".join(node.name.strip("/").split("/")[:-1])
        start = min((name.find(block) for block in _BLOCKS if block in name), default=-1)
        if start < 0:
            continue
        size = _size_of(node, weights, makers)
        if size is not None:
            yield Layer(_without_wrapper(name), node, *size)


def _without_wrapper(name: str) -> str:
    """Exporters wrap a model in a module of their own, whose name comes first: `m.down_blocks.1…`."""
    starts = ("encoder.layers.", "down_blocks.", "mid_block.", "up_blocks.", "transformer_blocks.", "single_transformer_blocks.")
    found = [name.find(start) for start in starts if name.find(start) >= 0]
    return name[min(found) :] if found else name


def _size_of(
    node: onnx.NodeProto, weights: dict[str, onnx.TensorProto], makers: dict[str, onnx.NodeProto]
) -> tuple[int, int, int] | None:
    """Inputs, outputs and the type of both; None of what is no product with a weight."""
    attributes = {attribute.name: attribute for attribute in node.attribute}
    if node.op_type == "MatMulNBits":
        return attributes["K"].i, attributes["N"].i, weights[node.input[2]].data_type
    if node.op_type not in ("MatMul", "Conv"):
        return None
    weight, element_type = _find_weight(node.input[1], weights, makers)
    if weight is None:
        return None
    if node.op_type == "MatMul":
        return weight.dims[0], weight.dims[1], element_type
    outputs, inputs, *kernel = weight.dims
    return (inputs, outputs, element_type) if all(side == 1 for side in kernel) else None


def _find_weight(
    name: str, weights: dict[str, onnx.TensorProto], makers: dict[str, onnx.NodeProto]
) -> tuple[onnx.TensorProto | None, int]:
    """A weight as it is, or one of int8 that a node before makes float: its scale has the type of the product."""
    if name in weights:
        return weights[name], weights[name].data_type
    maker = makers.get(name)
    if maker is None or maker.op_type not in ("DequantizeLinear", "Mul"):
        return None, 0
    values, scale = maker.input[0], weights.get(maker.input[1])
    if values in makers and makers[values].op_type == "Cast":
        values = makers[values].input[0]
    if values not in weights or scale is None:
        return None, 0
    return weights[values], scale.data_type


def _change(node: onnx.NodeProto, layer: Layer | None) -> list[onnx.NodeProto]:
    if layer is None:
        return [node]
    before, output = node.input[0], node.output[0]
    plain = f"{layer.name}.plain"
    node.output[0] = plain
    made: list[onnx.NodeProto] = [node]

    def add(operator: str, inputs: list[str], what: str, **attributes: object) -> str:
        name = what if what == output else f"{layer.name}.{what}"
        made.append(helper.make_node(operator, inputs, [name], **attributes))
        return name

    is_convolution = node.op_type == "Conv"
    if is_convolution:
        columns = add("Reshape", [before, _COLUMNS], "columns")
        before = add("Transpose", [columns], "pixels", perm=[0, 2, 1])
    first = add("Gather", [f"{layer.name}.lora_A", ROWS], "lora_A_rows", axis=0)
    last = add("Gather", [f"{layer.name}.lora_B", ROWS], "lora_B_rows", axis=0)
    down = add("MatMul", [add("Unsqueeze", [before, _BLOCK_AXIS], "one_block"), first], "lora_blocks")
    down = add("Reshape", [add("Transpose", [down], "lora_ranks", perm=[0, 2, 1, 3]), _COLUMNS], "lora_down")
    change = add("MatMul", [down, last], "lora_up")
    if is_convolution:
        change = add("Transpose", [change], "lora_columns", perm=[0, 2, 1])
        change = add("Reshape", [change, add("Shape", [plain], "shape")], "lora_change")
    add("Add", [plain, change], output)
    return made


def _refer_to(source: Path, graph: onnx.GraphProto) -> None:
    """Weights inside the source's file are read from there: the same bytes are found wherever they lie."""
    content = source.read_bytes()
    for weight in graph.initializer:
        raw = weight.raw_data
        if weight.data_location == TensorProto.EXTERNAL or len(raw) < _LEAST_BYTES:
            continue
        place = content.find(raw)
        if place < 0:
            continue
        weight.ClearField("raw_data")
        weight.data_location = TensorProto.EXTERNAL
        for key, value in {"location": source.name, "offset": str(place), "length": str(len(raw))}.items():
            weight.external_data.add(key=key, value=value)


def digest_of(file: Path) -> str:
    """SHA-256 of a file's size and of 64 KB each of its beginning, middle and end: training changes all of it."""
    size = file.stat().st_size
    digest = hashlib.sha256(str(size).encode())
    with file.open("rb") as opened:
        for start in (0, size // 2, max(0, size - _SAMPLE)):
            opened.seek(start)
            digest.update(opened.read(_SAMPLE))
    return digest.hexdigest()


def _shorten_names(graph: onnx.GraphProto) -> None:
    """Names that torch's exporter gives are most of the bytes of a graph whose weights lie elsewhere."""
    del graph.value_info[:]
    if any(attribute.HasField("g") for node in graph.node for attribute in node.attribute):
        return
    short = {"": ""} | {value.name: value.name for value in [*graph.input, *graph.output]}
    for weight in graph.initializer:
        weight.name = short.setdefault(weight.name, f"w{len(short)}")
    for node in graph.node:
        node.name = ""
        for names in (node.input, node.output):
            names[:] = [short.setdefault(name, f"v{len(short)}") for name in names]
