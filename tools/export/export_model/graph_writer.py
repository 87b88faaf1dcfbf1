"""A graph that is written node by node."""

from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

from export_model.int8 import write_graph

_OPSETS = {"": 21, "com.microsoft": 1}
_IR_VERSION = 10


class GraphWriter:
    """Nodes and weights, in the order in which they are written."""

    def __init__(self) -> None:
        self._nodes: list[onnx.NodeProto] = []
        self._weights: dict[str, onnx.TensorProto] = {}

    def constant(self, name: str, values: np.ndarray) -> str:
        """A weight. The same name is the same weight."""
        if name not in self._weights:
            self._weights[name] = numpy_helper.from_array(np.ascontiguousarray(values), name)
        return name

    def whole(self, *numbers: int) -> str:
        """A list of int64."""
        return self.constant("whole_" + "_".join(map(str, numbers)), np.array(numbers, np.int64))

    def op(self, kind: str, inputs: list[str], outputs: list[str] | None = None, **attributes: object) -> str:
        """A node of ONNX, or of Microsoft's if it says so (`ms.`). Gives its first output."""
        domain, _, op_type = kind.rpartition(".")
        name = f"{op_type}_{len(self._nodes)}"
        outputs = outputs or [name]
        domain = "com.microsoft" if domain == "ms" else ""
        self._nodes.append(helper.make_node(op_type, inputs, outputs, name, domain=domain, **attributes))
        return outputs[0]

    def save(self, file: Path, inputs: list[onnx.ValueInfoProto], outputs: list[onnx.ValueInfoProto]) -> None:
        """Writes the graph. ONNX's own checker does not know all operators that ONNX Runtime has."""
        graph = helper.make_graph(self._nodes, "decoder", inputs, outputs, list(self._weights.values()))
        opsets = [helper.make_opsetid(domain, version) for domain, version in _OPSETS.items()]
        write_graph(helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION), file)
