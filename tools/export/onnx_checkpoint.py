"""python onnx_checkpoint.py <model> <checkpoint>: weights back out of an fp32 model of tools/train-emoji.

For trying the exporter on the embedded model: a checkpoint as diffusers writes it, from the model.onnx of its parts and
of vae_encoder. torch's exporter keeps the names of weights, and those of matrices in the names of nodes.
"""

import json
import shutil
import sys
from pathlib import Path

import onnx
import torch
from diffusers import AutoencoderKL, UNet2DConditionModel
from onnx import numpy_helper
from torch import nn
from transformers import CLIPTextConfig, CLIPTextModel


def main() -> None:
    """Writes the checkpoint."""
    source, target = (Path(word) for word in sys.argv[1:])
    config = {part: json.loads((source / part / "config.json").read_text()) for part in ("unet", "vae_decoder")}
    models = {
        "text_encoder": CLIPTextModel(CLIPTextConfig.from_pretrained(source / "text_encoder")),
        "unet": UNet2DConditionModel.from_config(config["unet"]),
        "vae": AutoencoderKL.from_config(config["vae_decoder"]),
    }
    weights = {part: _weights(source / part / "model.onnx") for part in ("text_encoder", "unet")}
    weights["vae"] = _weights(source / "vae_encoder/model.onnx") | _weights(source / "vae_decoder/model.onnx")
    for name, model in models.items():
        _fill(model, weights[name])
        model.save_pretrained(target / name)
    for folder in ("tokenizer", "scheduler"):
        shutil.copytree(source / folder, target / folder)
    if (source / "darkroom.json").exists():
        shutil.copy(source / "darkroom.json", target)
    scheduler = json.loads((source / "scheduler/scheduler_config.json").read_text())["_class_name"]
    index = {
        "_class_name": "StableDiffusionPipeline",
        "feature_extractor": [None, None],
        "requires_safety_checker": False,
        "safety_checker": [None, None],
        "scheduler": ["diffusers", scheduler],
        "text_encoder": ["transformers", "CLIPTextModel"],
        "tokenizer": ["transformers", "CLIPTokenizer"],
        "unet": ["diffusers", "UNet2DConditionModel"],
        "vae": ["diffusers", "AutoencoderKL"],
    }
    (target / "model_index.json").write_text(json.dumps(index, indent=2) + "\n")


def _weights(file: Path) -> dict[str, torch.Tensor]:
    """By the names they have in torch, with the prefix of the exported module before them."""
    graph = onnx.load(file).graph
    arrays = {weight.name: numpy_helper.to_array(weight) for weight in graph.initializer}
    named = {name: torch.tensor(array) for name, array in arrays.items() if not name.startswith("onnx::")}
    for node in graph.node:
        path = node.name.strip("/").replace("/", ".").rpartition(".")[0]
        weight = next((name for name in node.input if name.startswith("onnx::") and name in arrays), None)
        if weight is None:
            continue
        value = torch.tensor(arrays[weight])
        # Linear layers are stored transposed, weight and bias of group norms as factors of an instance norm.
        kind = "bias" if node.op_type == "Add" else "weight"
        named[f"{path}.{kind}"] = value.T if node.op_type == "MatMul" else value.flatten()
    return named


def _fill(model: nn.Module, weights: dict[str, torch.Tensor]) -> None:
    """Each weight of the model, from the only one whose name ends like its own."""
    filled = {}
    for name, parameter in model.state_dict().items():
        if name.endswith("position_ids"):
            continue
        found = [value for other, value in weights.items() if f".{other}".endswith(f".{name}")]
        if len(found) != 1 or found[0].shape != parameter.shape:
            raise SystemExit(f"{type(model).__name__}: {name}: {len(found)} weights of this name, or another shape")
        filled[name] = found[0].contiguous()
    model.load_state_dict(filled, strict=False)


main()
