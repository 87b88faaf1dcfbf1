from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from torch import nn

from train_emoji.quantize import quantize_graph, quantize_weight


def write_graph(path: Path, module: nn.Module, example: torch.Tensor) -> None:
    names = {"input_names": ["x"], "output_names": ["y"]}
    torch.onnx.export(module.eval(), (example,), str(path), **names, opset_version=17, dynamo=False)


def run(path: Path, x: np.ndarray) -> np.ndarray:
    return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]


def test_errors_are_at_most_half_a_step_of_each_channel() -> None:
    weight = np.random.default_rng(0).standard_normal((6, 5, 3, 3)).astype(np.float32)
    weight[2] *= 100
    weight[3] = 0
    values, scale = quantize_weight(weight, 0)
    assert values.dtype == np.int8
    assert scale.shape == (6, 1, 1, 1)
    assert (np.abs(values * scale - weight) <= scale * 0.501).all()


def test_convolutions_and_products_become_int8_and_nearly_the_same(tmp_path: Path) -> None:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Conv2d(8, 32, 3), nn.SiLU(), nn.Flatten(2), nn.Linear(36, 64), nn.Linear(64, 4))
    x = torch.randn(2, 8, 8, 8)
    write_graph(tmp_path / "model.onnx", module, x)
    quantized = quantize_graph(tmp_path / "model.onnx", tmp_path / "model_int8.onnx")
    assert quantized.weights == 2  # the last one is too small
    assert quantized.bytes_after < 0.6 * quantized.bytes_before
    types = [initializer.data_type for initializer in onnx.load(tmp_path / "model_int8.onnx").graph.initializer]
    assert types.count(onnx.TensorProto.INT8) == 2
    before, after = (run(tmp_path / name, x.numpy()) for name in ("model.onnx", "model_int8.onnx"))
    assert not np.array_equal(before, after)
    assert np.abs(before - after).max() < 0.02 * np.abs(before).max()


def test_a_row_does_not_change_with_its_neighbours(tmp_path: Path) -> None:
    torch.manual_seed(0)
    write_graph(tmp_path / "model.onnx", nn.Sequential(nn.Conv2d(8, 32, 3)), torch.randn(3, 8, 8, 8))
    quantize_graph(tmp_path / "model.onnx", tmp_path / "model_int8.onnx")
    rows = np.random.default_rng(0).standard_normal((3, 8, 8, 8)).astype(np.float32)
    others = rows.copy()
    others[1:] *= 1000
    path = tmp_path / "model_int8.onnx"
    assert np.array_equal(run(path, rows)[0], run(path, others)[0])


def test_refuses_a_graph_with_nothing_to_quantize(tmp_path: Path) -> None:
    write_graph(tmp_path / "model.onnx", nn.Linear(4, 4), torch.randn(2, 4))
    with pytest.raises(ValueError, match=r"model\.onnx has no matrix or kernel of 1024 numbers"):
        quantize_graph(tmp_path / "model.onnx", tmp_path / "model_int8.onnx")
