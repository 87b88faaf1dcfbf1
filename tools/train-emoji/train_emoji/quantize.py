"""INT8 weights: a graph whose matrices and kernels are int8 with a scale for each output channel.

They are stored as int8 → Cast → Mul(scale). Every ONNX Runtime folds these to fp32 when it loads the graph, without
options: the speed of fp32 at about a quarter of the disk, and a row of a batch does not change with its neighbours.
"""

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

_SMALLEST = 1024
"""Numbers; smaller weights stay as they are."""


@dataclass(frozen=True)
class Quantized:
    """What became of a graph."""

    weights: int
    """Matrices and kernels that are int8 now."""
    bytes_before: int
    bytes_after: int


def quantize_graph(source: Path, target: Path) -> Quantized:
    """Writes `target`, the graph `source` with int8 weights.

    Raises:
        ValueError: no weight of the graph can be quantized.
    """
    model = onnx.load(source)
    graph = model.graph
    uses: dict[str, list[tuple[onnx.NodeProto, int]]] = defaultdict(list)
    for node in graph.node:
        for position, name in enumerate(node.input):
            uses[name].append((node, position))
    nodes: list[onnx.NodeProto] = []
    for initializer in list(graph.initializer):
        axis = _output_axis(uses[initializer.name], len(initializer.dims))
        weight = numpy_helper.to_array(initializer)
        if axis is None or weight.dtype != np.float32 or weight.size < _SMALLEST:
            continue
        name = initializer.name
        values, scale = quantize_weight(weight, axis)
        graph.initializer.remove(initializer)
        graph.initializer.extend(
            [numpy_helper.from_array(values, f"{name}_q"), numpy_helper.from_array(scale, f"{name}_s")]
        )
        nodes.append(helper.make_node("Cast", [f"{name}_q"], [f"{name}_f"], to=onnx.TensorProto.FLOAT))
        nodes.append(helper.make_node("Mul", [f"{name}_f", f"{name}_s"], [name]))
    if not nodes:
        raise ValueError(f"{source} has no matrix or kernel of {_SMALLEST} numbers or more")
    for position, node in enumerate(nodes):
        graph.node.insert(position, node)
    onnx.checker.check_model(model)
    onnx.save(model, target)
    return Quantized(len(nodes) // 2, source.stat().st_size, target.stat().st_size)


def quantize_weight(weight: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """Int8 values and the float32 scale of each slice along `axis`, shaped to be multiplied: |error| ≤ scale / 2."""
    others = tuple(other for other in range(weight.ndim) if other != axis)
    scale = np.abs(weight).max(axis=others, keepdims=True) / np.float32(127) + np.float32(1e-12)
    return np.clip(np.rint(weight / scale), -127, 127).astype(np.int8), scale.astype(np.float32)


def _output_axis(uses: list[tuple[onnx.NodeProto, int]], dimensions: int) -> int | None:
    """The axis of the output channels, or None if this is not (only) the weight of convolutions and products."""
    axes = {_axis_of_use(node, position, dimensions) for node, position in uses}
    return axes.pop() if len(axes) == 1 else None


def _axis_of_use(node: onnx.NodeProto, position: int, dimensions: int) -> int | None:
    if position != 1 or dimensions < 2:
        return None
    if node.op_type == "Conv":
        return 0
    if node.op_type == "Gemm":
        return 0 if any(attribute.name == "transB" and attribute.i for attribute in node.attribute) else 1
    return dimensions - 1 if node.op_type == "MatMul" else None
