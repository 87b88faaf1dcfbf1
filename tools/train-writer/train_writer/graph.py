"""The ONNX graph of a network, in the decoder layout of Optimum and transformers.js.

Only plain operators, and in such an order that a row has the same bits alone and in a batch, on a CPU: the query heads of a key head are
rows of one product, and the sum of the softmax comes from a column of ones beside the values. So it is added up by position, as the
values are, and zeros of padding change nothing; ONNX's Softmax adds in lanes that padding shifts.
"""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from train_writer.model import Network, Shape

_OPSET = 21
_IR_VERSION = 10


class Graph:
    """Nodes and constants, growing."""

    def __init__(self, is_int8: bool) -> None:
        self._is_int8 = is_int8
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[str, onnx.TensorProto] = {}

    def op(self, kind: str, *inputs: str, name: str | None = None, outputs: int = 1, **attributes: object) -> str | list[str]:
        """Adds a node; its output's name, or their names."""
        base = name or f"{kind.lower()}_{len(self._nodes)}"
        names = [base] if outputs == 1 else [f"{base}_{at}" for at in range(outputs)]
        self._nodes.append(helper.make_node(kind, list(inputs), names, name=f"node_{len(self._nodes)}", **attributes))
        return base if outputs == 1 else names

    def keep(self, name: str, values: np.ndarray) -> str:
        """Adds a constant."""
        self._constants[name] = numpy_helper.from_array(np.ascontiguousarray(values), name)
        return name

    def ints(self, *values: int) -> str:
        """A constant list of whole numbers."""
        return self.keep("ints_" + "_".join(map(str, values)).replace("-", "m"), np.array(values, np.int64))

    def number(self, value: float) -> str:
        """A constant number."""
        return self.keep(f"number_{value:g}".replace("-", "m").replace(".", "p"), np.array(value, np.float32))

    def weight(self, name: str, values: np.ndarray, scaled_axis: int) -> str:
        """A matrix; as INT8 with a scale for each place on an axis, which onnxruntime multiplies out when it loads."""
        if not self._is_int8:
            return self.keep(name, values)
        scale = np.abs(values).max(axis=1 - scaled_axis, keepdims=True) / np.float32(127) + np.float32(1e-12)
        self.keep(f"{name}_q", np.clip(np.rint(values / scale), -127, 127).astype(np.int8))
        self.keep(f"{name}_s", scale.astype(np.float32))
        return self.op("Mul", self.op("Cast", f"{name}_q", to=TensorProto.FLOAT), f"{name}_s", name=name)

    def model(self, inputs: list, outputs: list) -> onnx.ModelProto:
        """The whole, checked."""
        graph = helper.make_graph(self._nodes, "emoji_writer", inputs, outputs, [*self._constants.values()])
        opset = helper.make_opsetid("", _OPSET)
        model = helper.make_model(graph, opset_imports=[opset], ir_version=_IR_VERSION, producer_name="train-writer")
        onnx.checker.check_model(model, full_check=True)
        return model


def build_graph(network: Network, is_causal: bool, is_int8: bool, reads: str = "input_ids") -> onnx.ModelProto:
    """A network's graph: tokens, attention_mask, position_ids and past keys and values → logits and present ones.

    Args:
        network: with the weights.
        is_causal: a position sees no later ones.
        is_int8: store matrices as INT8.
        reads: "input_ids", or "inputs_embeds" [batch, length, width] for a model that also reads images.
    """
    shape = network.shape
    weights = {name: value.detach().numpy() for name, value in network.state_dict().items()}
    graph = Graph(is_int8)
    table = graph.weight("embed", weights["embedding.weight"], 0)
    x = graph.op("Gather", table, reads) if reads == "input_ids" else reads
    shared = _Shared(graph, shape, is_causal, reads)
    for at in range(shape.layers):
        part = {name.removeprefix(f"layers.{at}."): value for name, value in weights.items() if name.startswith(f"layers.{at}.")}
        y = _write_norm(graph, x, f"layers.{at}.norm1", part["attention_norm"], shape.epsilon)
        x = graph.op("Add", x, _write_attention(graph, y, at, part, shared))
        y = _write_norm(graph, x, f"layers.{at}.norm2", part["hidden_norm"], shape.epsilon)
        gate = _write_linear(graph, y, f"layers.{at}.gate", part["gate.weight"])
        up = _write_linear(graph, y, f"layers.{at}.up", part["up.weight"])
        y = graph.op("Mul", graph.op("Mul", gate, graph.op("Sigmoid", gate)), up)
        x = graph.op("Add", x, _write_linear(graph, y, f"layers.{at}.down", part["down.weight"]))
    x = _write_norm(graph, x, "norm", weights["norm"], shape.epsilon)
    graph.op("MatMul", x, graph.op("Transpose", table, perm=[1, 0]), name="logits")
    return graph.model(*_describe(shape, reads))


class _Shared:
    """What all layers need: sizes that are known only when the graph runs, turns of positions, what may be seen, a column of ones."""

    def __init__(self, graph: Graph, shape: Shape, is_causal: bool, reads: str) -> None:
        ids, mask = graph.op("Shape", reads), graph.op("Shape", "attention_mask")
        self.batch = graph.op("Slice", ids, graph.ints(0), graph.ints(1))
        self.length = graph.op("Slice", ids, graph.ints(1), graph.ints(2))
        self.total = graph.op("Slice", mask, graph.ints(1), graph.ints(2))
        self.head_width = shape.head_width
        group = shape.heads // shape.key_heads
        rows = graph.op("Mul", self.length, graph.ints(group))
        heads, width = graph.ints(shape.key_heads), graph.ints(shape.head_width)
        concat = lambda *parts: graph.op("Concat", self.batch, *parts, axis=0)  # noqa: E731
        self.grouped = concat(heads, rows, width)
        self.scores = concat(heads, graph.ints(group), self.length, self.total)
        self.rows = concat(heads, rows, self.total)
        self.by_head = concat(heads, graph.ints(group), self.length, width)
        self.joined = concat(self.length, graph.ints(shape.heads * shape.head_width))
        self.split = {count: concat(self.length, graph.ints(count), width) for count in (shape.heads, shape.key_heads)}
        self.turn = _write_turn(graph, shape)
        self.bias = _write_bias(graph, self, is_causal)
        self.ones = graph.op("Expand", graph.number(1), concat(heads, self.total, graph.ints(1)))


def _write_turn(graph: Graph, shape: Shape) -> tuple[str, str]:
    """Cosines and sines of the positions: [batch, 1, length, head width]."""
    halves = np.arange(0, shape.head_width, 2) / shape.head_width
    speeds = graph.keep("speeds", (shape.theta**-halves).astype(np.float32))
    places = graph.op("Cast", graph.op("Unsqueeze", "position_ids", graph.ints(1, 3)), to=TensorProto.FLOAT)
    angles = graph.op("Mul", places, speeds)
    return tuple(graph.op("Concat", half, half, axis=-1) for half in (graph.op("Cos", angles), graph.op("Sin", angles)))


def _write_bias(graph: Graph, sizes: _Shared, is_causal: bool) -> str:
    """0 where a query may look, −1e9 elsewhere: [batch, 1, 1, 1 or length, total]."""
    seen = graph.op("Cast", graph.op("Unsqueeze", "attention_mask", graph.ints(1, 2, 3)), to=TensorProto.BOOL)
    if is_causal:
        nought, one = graph.keep("nought", np.array(0, np.int64)), graph.keep("one", np.array(1, np.int64))
        total, length = (graph.op("Squeeze", size, graph.ints(0)) for size in (sizes.total, sizes.length))
        columns = graph.op("Range", nought, total, one)
        rows = graph.op("Range", graph.op("Sub", total, length), total, one)
        before = graph.op("LessOrEqual", columns, graph.op("Unsqueeze", rows, graph.ints(1)))
        seen = graph.op("And", seen, before)
    return graph.op("Where", seen, graph.number(0), graph.number(-1e9))


def _write_norm(graph: Graph, x: str, name: str, weight: np.ndarray, epsilon: float) -> str:
    mean = graph.op("ReduceMean", graph.op("Mul", x, x), graph.ints(-1), keepdims=1)
    root = graph.op("Sqrt", graph.op("Add", mean, graph.number(epsilon)))
    return graph.op("Mul", graph.op("Mul", x, graph.op("Reciprocal", root)), graph.keep(name, weight))


def _write_linear(graph: Graph, x: str, name: str, weight: np.ndarray) -> str:
    return graph.op("MatMul", x, graph.weight(name, weight.T, 1))


def _write_attention(graph: Graph, x: str, at: int, part: dict[str, np.ndarray], shared: _Shared) -> str:
    head_width = shared.head_width
    counts = {name: part[f"{name}.weight"].shape[0] // head_width for name in ("query", "key", "value")}
    split = {}
    for name, count in counts.items():
        y = _write_linear(graph, x, f"layers.{at}.{name[0]}", part[f"{name}.weight"])
        split[name] = graph.op("Transpose", graph.op("Reshape", y, shared.split[count]), perm=[0, 2, 1, 3])
    query, key = (_write_turned(graph, split[name], shared.turn, head_width) for name in ("query", "key"))
    key = graph.op("Concat", f"past_key_values.{at}.key", key, axis=2, name=f"present.{at}.key")
    value = graph.op("Concat", f"past_key_values.{at}.value", split["value"], axis=2, name=f"present.{at}.value")
    query = graph.op("Reshape", graph.op("Mul", query, graph.number(head_width**-0.5)), shared.grouped)
    scores = graph.op("MatMul", query, graph.op("Transpose", key, perm=[0, 1, 3, 2]))
    scores = graph.op("Add", graph.op("Reshape", scores, shared.scores), shared.bias)
    highest = graph.op("ReduceMax", scores, graph.ints(-1), keepdims=1)
    powers = graph.op("Reshape", graph.op("Exp", graph.op("Sub", scores, highest)), shared.rows)
    y = graph.op("MatMul", powers, graph.op("Concat", value, shared.ones, axis=-1))
    summed, total = graph.op("Split", y, graph.ints(head_width, 1), outputs=2, axis=-1)
    y = graph.op("Reshape", graph.op("Div", summed, total), shared.by_head)
    y = graph.op("Reshape", graph.op("Transpose", y, perm=[0, 3, 1, 2, 4]), shared.joined)
    return _write_linear(graph, y, f"layers.{at}.o", part["output.weight"])


def _write_turned(graph: Graph, x: str, turn: tuple[str, str], head_width: int) -> str:
    cosine, sine = turn
    first, second = graph.op("Split", x, graph.ints(head_width // 2, head_width // 2), outputs=2, axis=-1)
    crossed = graph.op("Concat", graph.op("Neg", second), first, axis=-1)
    return graph.op("Add", graph.op("Mul", x, cosine), graph.op("Mul", crossed, sine))


def _describe(shape: Shape, reads: str) -> tuple[list, list]:
    tensor = helper.make_tensor_value_info
    whole, floating = TensorProto.INT64, TensorProto.FLOAT
    sequence = ["batch_size", "sequence_length"]
    inputs = [
        tensor(reads, whole, sequence) if reads == "input_ids" else tensor(reads, floating, [*sequence, shape.width]),
        tensor("attention_mask", whole, ["batch_size", "total_sequence_length"]),
        tensor("position_ids", whole, sequence),
    ]
    outputs = [tensor("logits", floating, ["batch_size", "sequence_length", shape.vocabulary])]
    for at in range(shape.layers):
        for part in ("key", "value"):
            sizes = ["batch_size", shape.key_heads, "{}_sequence_length", shape.head_width]
            for time, name, found in (("past", "past_key_values", inputs), ("total", "present", outputs)):
                dimensions = [size.format(time) if isinstance(size, str) else size for size in sizes]
                found.append(tensor(f"{name}.{at}.{part}", floating, dimensions))
    return inputs, outputs
