"""Records adapters that change text encoders, and the weights that they amount to, for the tests of ours; after record-loras.py.

    pip install onnx==1.23.2 numpy==2.4.6
    python tools/golden/record-lora-text-encoders.py

Into vectors/loras/<name>/: complete.safetensors with kohya's names, the UNet's part of kohya.safetensors there and random changes of
all linear layers of each text encoder; `<text encoder>.model.loras.onnx`, the graph that takes them; and text-encoders.json with the
bytes of each text encoder's model.onnx in vectors/pipelines that differ once the changes, times `scale`, are added to its weights. That
is what an adapter means, so a model with these bytes must draw what the plain model draws with the adapter.
"""

import base64
import json
import pathlib
import shutil
import sys

import numpy as np
import onnx
from onnx import numpy_helper

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tools/export"))

from export_model.loras import list_layers, loras_file, write_loras_graph  # noqa: E402

SCALE, ALPHA, RANK = 0.6, 3.0, 5


def read_safetensors(file: pathlib.Path) -> tuple[dict, bytes]:
    content = file.read_bytes()
    end = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:end])
    header.pop("__metadata__", None)
    return header, content[end:]


def write_safetensors(file: pathlib.Path, header: dict, data: bytes, added: dict[str, np.ndarray]) -> None:
    for name, values in added.items():
        raw = values.astype("<f4").tobytes()
        offsets = [len(data), len(data) + len(raw)]
        header[name] = {"dtype": "F32", "shape": list(values.shape), "data_offsets": offsets}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    file.write_bytes(len(text).to_bytes(8, "little") + text + data)


def record(name: str) -> None:
    folder, model = HERE / "vectors/loras" / name, HERE / "vectors/pipelines" / name / "model"
    encoders = sorted(path.parent for path in model.glob("text_encoder*/model.onnx"))
    rng = np.random.default_rng(5)
    added, patches = {}, {}
    for number, encoder in enumerate(encoders, start=1):
        file = encoder / "model.onnx"
        write_loras_graph(file)
        shutil.move(loras_file(file), folder / f"{encoder.name}.model.loras.onnx")
        prefix = "lora_te" if len(encoders) == 1 else f"lora_te{number}"
        patches[encoder.name] = list(change_weights(file, prefix, rng, added))
    header, data = read_safetensors(folder / "kohya.safetensors")
    write_safetensors(folder / "complete.safetensors", header, data, added)
    (folder / "text-encoders.json").write_text(json.dumps({"scale": SCALE, "patches": patches}) + "\n")


def change_weights(file: pathlib.Path, prefix: str, rng: np.random.Generator, added: dict[str, np.ndarray]):
    """Adds a change of each layer to `added`; yields where in the file its weights lie, and what they become."""
    content, graph = file.read_bytes(), onnx.load(file).graph
    weights = {weight.name: weight for weight in graph.initializer}
    for layer in list_layers(graph):
        down = rng.normal(scale=0.5, size=(RANK, layer.inputs)).astype(np.float32)
        up = rng.normal(scale=0.5, size=(layer.outputs, RANK)).astype(np.float32)
        key = f"{prefix}_text_model_{layer.name.replace('.', '_')}"
        added |= {f"{key}.lora_down.weight": down, f"{key}.lora_up.weight": up, f"{key}.alpha": np.array(ALPHA)}
        weight = weights[layer.node.input[1]]
        assert content.count(weight.raw_data) == 1
        values = numpy_helper.to_array(weight).astype(np.float64) + SCALE * ALPHA / RANK * (up @ down).T
        yield [content.find(weight.raw_data), base64.b64encode(values.astype("<f4").tobytes()).decode()]


if __name__ == "__main__":
    for recorded in ("stable-diffusion-2", "latent-consistency", "stable-diffusion-xl"):
        record(recorded)
