"""The ONNX graphs beside the decoder, in the layout of transformers.js: images and tokens to embeddings.

Only plain operators. Darkroom encodes one image at a time and cuts the encoder at its Softmax nodes, so that texts go on between layers.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto, helper
from train_writer.graph import Graph

from train_reader.model import Reader

Weights = dict[str, np.ndarray]


@dataclass(frozen=True)
class TransformerShape:
    """Properties of a vision transformer that its weights do not show."""

    heads: int
    epsilon: float
    activation: Callable[[Graph, str], str]


def build_embedding_graph(table: np.ndarray, is_int8: bool) -> onnx.ModelProto:
    """input_ids [rows, tokens] → inputs_embeds [rows, tokens, width]."""
    graph = Graph(is_int8)
    graph.op("Gather", graph.weight("embed", table, 0), "input_ids", name="inputs_embeds")
    tensor, sides = helper.make_tensor_value_info, ["batch_size", "sequence_length"]
    inputs = [tensor("input_ids", TensorProto.INT64, sides)]
    return graph.model(inputs, [tensor("inputs_embeds", TensorProto.FLOAT, [*sides, table.shape[1]])])


def build_encoder_graph(reader: Reader, is_int8: bool) -> onnx.ModelProto:
    """pixel_values [images, 3, side, side] → image_features [images, patches, width of the text]."""
    shape = reader.vision.shape
    weights = {name: value.detach().numpy() for name, value in reader.state_dict().items()}
    vision = {name.removeprefix("vision."): value for name, value in weights.items() if name.startswith("vision.")}
    graph = Graph(is_int8)
    x = write_patches(graph, "pixel_values", vision["patch_embedding.weight"], None, shape.patches)
    count = graph.op("Slice", graph.op("Shape", x), graph.ints(0), graph.ints(1))
    first = graph.keep("class_embedding", vision["class_embedding"][None, None])
    class_token = graph.op("Expand", first, graph.op("Concat", count, graph.ints(1, shape.width), axis=0))
    x = graph.op("Concat", class_token, x, axis=1)
    x = graph.op("Add", x, graph.keep("position_embedding", vision["position_embedding"]))
    x = write_norm(graph, x, "norm", vision["norm.weight"], vision["norm.bias"], shape.epsilon)
    transformer = TransformerShape(shape.heads, shape.epsilon, write_quick_gelu)
    for at in range(shape.layers):
        prefix = f"layers.{at}."
        layer = {name.removeprefix(prefix): value for name, value in vision.items() if name.startswith(prefix)}
        x = write_layer(graph, x, prefix, layer, transformer)
    x = graph.op("Slice", x, graph.ints(1), graph.ints(shape.patches + 1), graph.ints(1))
    x = write_quick_gelu(graph, write_linear(graph, x, "projector1", weights))
    write_linear(graph, x, "projector2", weights, name="image_features")
    tensor = helper.make_tensor_value_info
    inputs = [tensor("pixel_values", TensorProto.FLOAT, ["num_images", 3, shape.side, shape.side])]
    outputs = [tensor("image_features", TensorProto.FLOAT, ["num_images", shape.patches, reader.text.shape.width])]
    return graph.model(inputs, outputs)


def write_patches(graph: Graph, pixels: str, kernel: np.ndarray, bias: np.ndarray | None, patches: int) -> str:
    """[images, 3, side, side] → [images, patches, width]: each patch times the kernel [width, 3, patch, patch]."""
    width, _, patch, _ = kernel.shape
    inputs = [pixels, graph.weight("patch_embedding", kernel.reshape(width, -1), 0)]
    shape = graph.ints(width, 3, patch, patch)
    inputs[1] = graph.op("Reshape", inputs[1], shape)
    if bias is not None:
        inputs.append(graph.keep("patch_bias", bias))
    x = graph.op("Conv", *inputs, kernel_shape=[patch, patch], strides=[patch, patch])
    return graph.op("Transpose", graph.op("Reshape", x, graph.ints(0, width, patches)), perm=[0, 2, 1])


def write_layer(graph: Graph, x: str, prefix: str, layer: Weights, shape: TransformerShape) -> str:
    """Attention and two linear layers, each behind a norm, with the names of `VisionLayer`."""
    y = write_norm(graph, x, f"{prefix}norm1", layer["norm1.weight"], layer["norm1.bias"], shape.epsilon)
    head_width = layer["query.weight"].shape[0] // shape.heads
    split = {}
    for part in ("query", "key", "value"):
        z = write_linear(graph, y, part, layer, prefix=prefix)
        z = graph.op("Reshape", z, graph.ints(0, 0, shape.heads, head_width))
        split[part] = graph.op("Transpose", z, perm=[0, 2, 3, 1] if part == "key" else [0, 2, 1, 3])
    scores = graph.op("MatMul", graph.op("Mul", split["query"], graph.number(head_width**-0.5)), split["key"])
    y = graph.op("MatMul", graph.op("Softmax", scores, axis=-1), split["value"])
    y = graph.op("Reshape", graph.op("Transpose", y, perm=[0, 2, 1, 3]), graph.ints(0, 0, shape.heads * head_width))
    x = graph.op("Add", x, write_linear(graph, y, "output", layer, prefix=prefix))
    y = write_norm(graph, x, f"{prefix}norm2", layer["norm2.weight"], layer["norm2.bias"], shape.epsilon)
    y = shape.activation(graph, write_linear(graph, y, "up", layer, prefix=prefix))
    return graph.op("Add", x, write_linear(graph, y, "down", layer, prefix=prefix))


def write_norm(graph: Graph, x: str, name: str, weight: np.ndarray, bias: np.ndarray, epsilon: float) -> str:
    """A layer norm over the last axis."""
    inputs = [x, graph.keep(f"{name}.weight", weight), graph.keep(f"{name}.bias", bias)]
    return graph.op("LayerNormalization", *inputs, axis=-1, epsilon=epsilon)


def write_linear(graph: Graph, x: str, part: str, weights: Weights, *, prefix: str = "", name: str | None = None) -> str:
    """A linear layer of torch; with a bias if the weights have one."""
    bias = weights.get(f"{part}.bias")
    matrix = graph.weight(f"{prefix}{part}", weights[f"{part}.weight"].T, 1)
    if bias is None:
        return graph.op("MatMul", x, matrix, name=name)
    return graph.op("Add", graph.op("MatMul", x, matrix), graph.keep(f"{prefix}{part}.bias", bias), name=name)


def write_quick_gelu(graph: Graph, x: str) -> str:
    """CLIP's activation."""
    return graph.op("Mul", x, graph.op("Sigmoid", graph.op("Mul", x, graph.number(1.702))))
