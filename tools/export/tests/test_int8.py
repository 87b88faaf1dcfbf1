from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

from export_model import int8
from export_model.int8 import quantize_graph

FLOAT = onnx.TensorProto.FLOAT


def write_graph(file: Path, *, with_others: bool = False) -> None:
    """Ids → table → product of 96 rows → kernel."""
    generator = np.random.default_rng(0)

    def weight(name: str, *shape: int) -> onnx.TensorProto:
        return numpy_helper.from_array(generator.standard_normal(shape, dtype=np.float32), name)

    nodes = [
        helper.make_node("Gather", ["table", "ids"], ["embedded"]),
        helper.make_node("MatMul", ["embedded", "matrix"], ["multiplied"], name="product"),
        helper.make_node("Unsqueeze", ["multiplied", "axis"], ["image"]),
        helper.make_node("Conv", ["image", "kernel"], ["out"]),
    ]
    weights = [
        weight("table", 50, 96),
        weight("matrix", 96, 40),
        weight("kernel", 16, 1, 6, 6),
        numpy_helper.from_array(np.array([1]), "axis"),
    ]
    if with_others:
        nodes[-1].output[0] = "before"
        nodes.append(helper.make_node("Add", ["before", "factors"], ["out"]))
        weights.append(weight("factors", 16, 45, 35))
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info("ids", onnx.TensorProto.INT64, ["batch", 50])],
        [helper.make_tensor_value_info("out", FLOAT, ["batch", 16, 45, 35])],
        weights,
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10), file)


def run(file: Path) -> np.ndarray:
    ids = np.arange(50)[None].repeat(2, 0)
    return onnxruntime.InferenceSession(str(file)).run(None, {"ids": ids})[0]


def test_makes_matrices_kernels_and_tables_int8(tmp_path: Path) -> None:
    source, target = tmp_path / "model.onnx", tmp_path / "model_int8.onnx"
    write_graph(source)
    quantized = quantize_graph(source, target)
    assert quantized.counts == {"Conv": 1, "Gather": 1, "MatMul": 1}
    assert quantized.left == {}
    graph = onnx.load(target).graph
    product = next(node for node in graph.node if node.op_type == "MatMulNBits")
    assert {a.name: a.i for a in product.attribute} == {
        "K": 96,
        "N": 40,
        "accuracy_level": 4,
        "bits": 8,
        "block_size": 32,
    }
    assert [node.op_type for node in graph.node].count("DequantizeLinear") == 1
    assert not [weight.name for weight in graph.initializer if weight.data_type == FLOAT and np.prod(weight.dims) > 200]
    expected = run(source)
    assert np.abs(run(target) - expected).max() < 0.03 * np.abs(expected).max()


def test_names_what_stays_float(tmp_path: Path) -> None:
    write_graph(tmp_path / "model.onnx", with_others=True)
    assert quantize_graph(tmp_path / "model.onnx", tmp_path / "model_int8.onnx").left == {"factors": 16 * 45 * 35}


def test_puts_the_weights_of_a_large_graph_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(int8, "_LARGEST_FILE", 1000)
    source, target = tmp_path / "model.onnx", tmp_path / "model_int8.onnx"
    write_graph(source)
    quantize_graph(source, target)
    assert target.stat().st_size < 4000
    outside = (tmp_path / "model_int8.onnx_data").stat()
    assert outside.st_size > 8000
    assert outside.st_mode & 0o444 == 0o444
    assert np.isfinite(run(target)).all()


def test_refuses_a_graph_without_weights(tmp_path: Path) -> None:
    node = helper.make_node("Identity", ["a"], ["b"])
    values = [helper.make_tensor_value_info(name, FLOAT, [1]) for name in "ab"]
    graph = helper.make_graph([node], "empty", values[:1], values[1:])
    onnx.save(helper.make_model(graph), tmp_path / "model.onnx")
    with pytest.raises(SystemExit, match="no weight can be quantized"):
        quantize_graph(tmp_path / "model.onnx", tmp_path / "model_int8.onnx")
