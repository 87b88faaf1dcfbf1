"""Graphs with adapters: what they compute, whatever the weights are written as, and that a row keeps its bits."""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

from export_model.int8 import quantize_graph
from export_model.loras import BLOCK, loras_file, write_loras_graph

_TOKENS, _WIDTH, _OUT = 9, 64, 96
_LINEAR, _PIXELS = "down_blocks.0.attentions.0.transformer_blocks.0.ff.net.2", "down_blocks.0.attentions.0.proj_in"


def _make_graph(file: Path, dtype: type = np.float32) -> None:
    """A linear layer and a convolution of one pixel, as torch's exporter names them in a module around the model."""
    rng = np.random.default_rng(0)
    weights = {
        "onnx::MatMul_1": rng.standard_normal((_WIDTH, _OUT)),
        "m.proj_in.weight": rng.standard_normal((_OUT, _WIDTH, 1, 1)),
        "m.proj_in.bias": rng.standard_normal(_OUT),
        "m.conv_in.weight": rng.standard_normal((_WIDTH, _WIDTH, 3, 3)),
    }
    name = "/m/down_blocks.0/attentions.0/transformer_blocks.0/ff/net.2/MatMul"
    nodes = [
        helper.make_node("MatMul", ["tokens", "onnx::MatMul_1"], ["linear"], name=name),
        helper.make_node("Conv", ["pixels", "m.conv_in.weight"], ["before"], name="/m/conv_in/Conv", pads=[1] * 4),
        helper.make_node(
            "Conv",
            ["before", "m.proj_in.weight", "m.proj_in.bias"],
            ["convolved"],
            name="/m/down_blocks.0/attentions.0/proj_in/Conv",
        ),
    ]
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    graph = helper.make_graph(
        nodes,
        "g",
        [
            helper.make_tensor_value_info("tokens", element, ["rows", "tokens", _WIDTH]),
            helper.make_tensor_value_info("pixels", element, ["rows", _WIDTH, "height", "width"]),
        ],
        [
            helper.make_tensor_value_info("linear", element, ["rows", "tokens", _OUT]),
            helper.make_tensor_value_info("convolved", element, ["rows", _OUT, "height", "width"]),
        ],
        [numpy_helper.from_array(value.astype(dtype), key) for key, value in weights.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), file)


def _open(file: Path) -> onnxruntime.InferenceSession:
    return onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])


def _make_adapters(ranks: list[int], dtype: type = np.float32) -> tuple[dict[str, np.ndarray], list[dict]]:
    """The inputs, filled up with zeros, and the plain matrices of each."""
    rng = np.random.default_rng(1)
    blocks = -(-max(ranks) // BLOCK)
    plain, feeds = [], {}
    for layer in (_LINEAR, _PIXELS):
        feeds[f"{layer}.lora_A"] = np.zeros((len(ranks), blocks, _WIDTH, BLOCK), dtype)
        feeds[f"{layer}.lora_B"] = np.zeros((len(ranks), blocks * BLOCK, _OUT), dtype)
    for at, rank in enumerate(ranks):
        made = {}
        for layer in (_LINEAR, _PIXELS):
            a, b = (rng.standard_normal(shape).astype(dtype) / 8 for shape in ((_WIDTH, rank), (rank, _OUT)))
            made[layer] = a.astype(np.float64) @ b.astype(np.float64)
            for column in range(rank):
                feeds[f"{layer}.lora_A"][at, column // BLOCK, :, column % BLOCK] = a[:, column]
            feeds[f"{layer}.lora_B"][at, :rank] = b
        plain.append(made)
    return feeds, plain


def _inputs(rows: int, dtype: type = np.float32) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(2)
    shapes = {"tokens": (rows, _TOKENS, _WIDTH), "pixels": (rows, _WIDTH, 3, 5)}
    return {name: rng.standard_normal(shape).astype(dtype) for name, shape in shapes.items()}


@pytest.mark.parametrize(("kind", "tolerance"), [("fp32", 1e-5), ("fp16", 5e-3), ("int8", 1e-5)])
def test_adds_the_adapter_of_each_row(tmp_path: Path, kind: str, tolerance: float) -> None:
    file, dtype = tmp_path / "model.onnx", np.float16 if kind == "fp16" else np.float32
    _make_graph(file, dtype)
    if kind == "int8":
        quantize_graph(file, tmp_path / "model_int8.onnx")
        file = tmp_path / "model_int8.onnx"
    assert write_loras_graph(file) == 2
    adapters, plain = _make_adapters([4, 24], dtype)
    inputs, rows = _inputs(3, dtype), np.array([1, 0, 1])
    base = dict(zip(("linear", "convolved"), _open(file).run(None, inputs), strict=True))
    found = _open(loras_file(file)).run(["linear", "convolved"], {**inputs, **adapters, "lora_rows": rows})
    before = _run_convolution(file, inputs)
    for at, row in enumerate(rows):
        linear = base["linear"][at] + inputs["tokens"][at].astype(np.float64) @ plain[row][_LINEAR]
        pixels = base["convolved"][at] + np.einsum("chw,co->ohw", before[at].astype(np.float64), plain[row][_PIXELS])
        for expected, given in ((linear, found[0][at]), (pixels, found[1][at])):
            assert np.abs(given - expected).max() / np.abs(expected).max() < tolerance


def _run_convolution(file: Path, inputs: dict[str, np.ndarray]) -> np.ndarray:
    """What goes into the convolution of one pixel."""
    model = onnx.load(file)
    element = model.graph.input[1].type.tensor_type.elem_type
    model.graph.output.append(helper.make_tensor_value_info("before", element, ["rows", _WIDTH, "height", "width"]))
    onnx.save(model, file.with_name("before.onnx"))
    return _open(file.with_name("before.onnx")).run(["before"], inputs)[0]


def test_a_row_keeps_its_bits_whatever_ranks_the_others_have(tmp_path: Path) -> None:
    file = tmp_path / "model.onnx"
    _make_graph(file)
    write_loras_graph(file)
    session, inputs = _open(loras_file(file)), _inputs(4)
    adapters, _ = _make_adapters([4, 16, 40, 128])
    together = session.run(None, {**inputs, **adapters, "lora_rows": np.arange(4)})
    for row, rank in enumerate([4, 16, 40, 128]):
        blocks = -(-rank // BLOCK)
        own = {
            name: value[row : row + 1, :blocks] if name.endswith("A") else value[row : row + 1, : blocks * BLOCK]
            for name, value in adapters.items()
        }
        alone = {name: value[row : row + 1] for name, value in inputs.items()}
        found = session.run(None, {**alone, **own, "lora_rows": np.array([0])})
        for one, all_rows in zip(found, together, strict=True):
            assert np.array_equal(one[0].view(np.uint32), all_rows[row].view(np.uint32))


def test_has_its_weights_in_the_file_of_the_other(tmp_path: Path) -> None:
    file = tmp_path / "model.onnx"
    _make_graph(file)
    write_loras_graph(file)
    assert loras_file(file).stat().st_size < 8000 < file.stat().st_size


def test_a_graph_without_names_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "model.onnx"
    _make_graph(file)
    model = onnx.load(file)
    for node in model.graph.node:
        node.name = ""
    onnx.save(model, file)
    with pytest.raises(LookupError, match="no layer of attention"):
        write_loras_graph(file)
    assert not loras_file(file).exists()


def test_finds_the_layers_of_a_text_encoder(tmp_path: Path) -> None:
    source = Path(__file__).resolve().parents[3] / "models/emoji-sd/text_encoder/model_int8.onnx"
    file = tmp_path / source.name
    file.write_bytes(source.read_bytes())
    assert write_loras_graph(file) == 12
    inputs = {value.name for value in _open(loras_file(file)).get_inputs()}
    assert {"encoder.layers.0.self_attn.q_proj.lora_A", "encoder.layers.1.mlp.fc2.lora_B"} < inputs
    assert loras_file(file).read_bytes() == loras_file(source).read_bytes()
