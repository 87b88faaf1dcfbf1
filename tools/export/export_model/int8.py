"""INT8 weights: of matrices by ONNX Runtime's own quantiser, of convolutions and of tables by a scale for each row.

Activations stay what they are. A product becomes MatMulNBits (8 bits, a scale for each block), a kernel is read through
DequantizeLinear, and of a table of embeddings only the rows that are read become float.

With 4 bits (of a text model) only matrices have them, and not the one that gives the logits: it is read by every token,
and what is lost in it is lost at once.
"""

import logging
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

_SMALLEST = 512
"""Numbers; smaller weights stay as they are."""
_LAST = "logits"
"""What the product that stays at 8 bits gives."""
_INTEGER_KERNELS = 4
"""MatMulNBits' accuracy_level. On a CPU it then multiplies integers: each row's activations get a scale for each block,
so that a row is the same bytes whatever is beside it. Without, weights become float at each call, in a product that
rounds otherwise for one row than for two."""
_LARGEST_FILE = 1_900_000_000
"""Bytes. Protobuf ends at 2 GiB; what is larger has its weights beside it."""

Uses = dict[str, list[tuple[onnx.NodeProto, int]]]


@dataclass(frozen=True)
class Scheme:
    """How matrices are quantized."""

    bits: int
    blocks: tuple[int, ...]
    """Numbers that share a scale: the most of these that divide a matrix's rows without a rest."""


INT8 = Scheme(8, (128, 64, 32))
TEXT_INT8 = Scheme(8, (32,))
"""With blocks of 128 a row alone has other last bits than in a batch: seen with SmolLM2 and ONNX Runtime 1.31."""
TEXT_Q4 = Scheme(4, (32,))


@dataclass(frozen=True)
class Quantized:
    """What became of a graph."""

    counts: Counter
    """Of weights by the operator that reads them."""
    left: dict[str, int]
    """Matrices, kernels and tables that are float still, with their numbers."""


def quantize_graph(source: Path, target: Path, scheme: Scheme = INT8) -> Quantized:
    """Writes `target`, the graph `source` with int8 weights, or with matrices of 4 bits.

    Raises:
        SystemExit: it has no weight that can be quantized.
    """
    model = onnx.load(source)
    counts: Counter = Counter()
    _quantize_kernels(model.graph, counts)
    _quantize_tables(model.graph, counts)
    last = {node.name for node in model.graph.node if _LAST in node.output}
    if scheme.bits == 4:
        model = _quantize_matrices(model, counts, scheme, last)
        scheme = TEXT_INT8
    model = _quantize_matrices(model, counts, scheme)
    if not counts:
        raise SystemExit(f"{source}: no weight can be quantized")
    left = {
        weight.name: int(np.prod(weight.dims))
        for weight in model.graph.initializer
        if weight.data_type == onnx.TensorProto.FLOAT
        and sum(side > 1 for side in weight.dims) > 1
        and np.prod(weight.dims) >= _SMALLEST
        and not weight.name.endswith(("_scale", "_scales"))
    }
    save_graph(model, target)
    return Quantized(counts, left)


def save_graph(model: onnx.ModelProto, target: Path) -> None:
    """Writes a graph, and checks it."""
    write_graph(model, target)
    onnx.checker.check_model(str(target))


def write_graph(model: onnx.ModelProto, target: Path) -> None:
    """Writes a graph, its weights beside it if it is too large for one file."""
    outside = {}
    if sum(len(weight.raw_data) for weight in model.graph.initializer) > _LARGEST_FILE:
        outside = {"save_as_external_data": True, "location": f"{target.name}_data", "size_threshold": 1024}
    onnx.save(model, target, **outside)
    make_readable(target)


def make_readable(graph: Path) -> None:
    """Files with weights are left to their owner alone by onnx, and a worker is mostly another user."""
    for file in graph.parent.glob(f"{graph.name}*"):
        file.chmod(0o644)


def _quantize_kernels(graph: onnx.GraphProto, counts: Counter) -> None:
    """Of convolutions and of Gemm, which MatMulNBits does not do: int8 → DequantizeLinear, a scale for each output."""
    uses = _uses(graph)
    nodes = []
    for weight in _weights(graph):
        axes = {_axis_of(node, position) for node, position in uses[weight.name]}
        axis = axes.pop() if len(axes) == 1 else None
        if axis is None:
            continue
        name = weight.name
        values, scale = _symmetric(numpy_helper.to_array(weight), axis)
        counts[uses[name][0][0].op_type] += 1
        _replace(graph, weight, [(values, f"{name}_int8"), (scale.ravel(), f"{name}_scale")])
        nodes.append(helper.make_node("DequantizeLinear", [f"{name}_int8", f"{name}_scale"], [name], axis=axis))
    _put_first(graph, nodes)


def _quantize_tables(graph: onnx.GraphProto, counts: Counter) -> None:
    """Gather of a table: the int8 rows and their scales are gathered, then multiplied."""
    uses = _uses(graph)
    tables = {
        weight.name: weight
        for weight in _weights(graph)
        if len(weight.dims) == 2 and all(_reads_rows(node, position) for node, position in uses[weight.name])
    }
    for name, weight in tables.items():
        values, scale = _symmetric(numpy_helper.to_array(weight), 0)
        counts["Gather"] += 1
        _replace(graph, weight, [(values, f"{name}_int8"), (scale, f"{name}_scale")])
    nodes = []
    for node in graph.node:
        if node.op_type != "Gather" or node.input[0] not in tables:
            nodes.append(node)
            continue
        table, index, out = node.input[0], node.input[1], node.output[0]
        nodes += [
            helper.make_node("Gather", [f"{table}_int8", index], [f"{out}_int8"]),
            helper.make_node("Gather", [f"{table}_scale", index], [f"{out}_scale"]),
            helper.make_node("Cast", [f"{out}_int8"], [f"{out}_float"], to=onnx.TensorProto.FLOAT),
            helper.make_node("Mul", [f"{out}_float", f"{out}_scale"], [out]),
        ]
    graph.ClearField("node")
    graph.node.extend(nodes)


def _quantize_matrices(
    model: onnx.ModelProto, counts: Counter, scheme: Scheme, without: set[str] = frozenset()
) -> onnx.ModelProto:
    # It says at each node what it does with it.
    logging.getLogger("onnxruntime.quantization.matmul_nbits_quantizer").setLevel(logging.ERROR)
    names = {weight.name: weight.dims for weight in _weights(model.graph)}
    products = [node for node in model.graph.node if node.op_type == "MatMul"]
    taken = [node for node in products if node.input[1] in names and node.name not in without]
    blocks = {node.name: _block(names[node.input[1]][0], scheme.blocks) for node in taken}
    for block in scheme.blocks:
        others = [node.name for node in products if blocks.get(node.name) != block]
        if len(others) == len(products):
            continue
        quantizer = MatMulNBitsQuantizer(
            model,
            bits=scheme.bits,
            block_size=block,
            # A zero of its own for each block is worth its bits where there are few.
            is_symmetric=scheme.bits == 8,
            accuracy_level=_INTEGER_KERNELS,
            op_types_to_quantize=("MatMul",),
            nodes_to_exclude=others,
        )
        quantizer.process()
        model = quantizer.model.model
        counts["MatMul"] += len(products) - len(others)
    return model


def _block(rows: int, sizes: tuple[int, ...]) -> int:
    return next((block for block in sizes if rows % block == 0), sizes[-1])


def _symmetric(weight: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """Int8 values and the float32 scale of each slice along `axis`, shaped to be multiplied: |error| ≤ scale / 2."""
    others = tuple(other for other in range(weight.ndim) if other != axis)
    scale = np.abs(weight).max(axis=others, keepdims=True) / np.float32(127)
    scale = np.where(scale == 0, np.float32(1), scale)
    return np.clip(np.rint(weight / scale), -127, 127).astype(np.int8), scale.astype(np.float32)


def _weights(graph: onnx.GraphProto) -> list[onnx.TensorProto]:
    """Matrices, kernels and tables of float32 that are large enough."""
    return [
        weight
        for weight in graph.initializer
        if weight.data_type == onnx.TensorProto.FLOAT and len(weight.dims) > 1 and np.prod(weight.dims) >= _SMALLEST
    ]


def _uses(graph: onnx.GraphProto) -> Uses:
    uses: Uses = defaultdict(list)
    for node in graph.node:
        for position, name in enumerate(node.input):
            uses[name].append((node, position))
    return uses


def _axis_of(node: onnx.NodeProto, position: int) -> int | None:
    """The axis of the output channels in a weight; None where it is read as something else."""
    if position != 1:
        return None
    if node.op_type == "Conv":
        return 0
    if node.op_type == "Gemm":
        return 0 if any(attribute.name == "transB" and attribute.i for attribute in node.attribute) else 1
    return None


def _reads_rows(node: onnx.NodeProto, position: int) -> bool:
    axis = next((attribute.i for attribute in node.attribute if attribute.name == "axis"), 0)
    return node.op_type == "Gather" and position == 0 and axis == 0


def _replace(graph: onnx.GraphProto, weight: onnx.TensorProto, arrays: list[tuple[np.ndarray, str]]) -> None:
    graph.initializer.remove(weight)
    graph.initializer.extend([numpy_helper.from_array(array, name) for array, name in arrays])


def _put_first(graph: onnx.GraphProto, nodes: list[onnx.NodeProto]) -> None:
    rest = list(graph.node)
    graph.ClearField("node")
    graph.node.extend([*nodes, *rest])
