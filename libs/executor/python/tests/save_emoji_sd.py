"""python save_emoji_sd.py <directory>: saves models/emoji-sd as a pipeline of diffusers, with its weights in torch."""

import json
import sys
from pathlib import Path

import numpy as np
import onnx
import torch
from diffusers import AutoencoderKL, DPMSolverMultistepScheduler, StableDiffusionPipeline, UNet2DConditionModel
from onnx import numpy_helper
from transformers import CLIPTextConfig, CLIPTextModel, CLIPTokenizer

MODEL = Path(__file__).resolve().parents[4] / "models/emoji-sd"


def read_weights(part: str) -> dict[str, torch.Tensor]:
    """Read the weights of a graph by their names in torch. The graph multiplies its INT8 weights by their scales."""
    graph = onnx.load(MODEL / part / "model_int8.onnx").graph
    arrays = {weight.name: numpy_helper.to_array(weight) for weight in graph.initializer}
    for name in [name for name in arrays if name.endswith("_q") and f"{name[:-2]}_s" in arrays]:
        arrays[name[:-2]] = arrays[name].astype(np.float32) * arrays[f"{name[:-2]}_s"]
    named = {name.removeprefix("m."): torch.tensor(array) for name, array in arrays.items()}
    for node in graph.node:
        path = node.name.strip("/").replace("/", ".").rpartition(".")[0].removeprefix("m.")
        weight = next((name for name in node.input if name.startswith("onnx::") and name in arrays), None)
        if weight is not None:
            value = torch.tensor(arrays[weight])
            kind = "bias" if node.op_type == "Add" else "weight"
            named[f"{path}.{kind}"] = value.T if node.op_type == "MatMul" else value.flatten()
    return named


def load(module: torch.nn.Module, part: str, prefix: str = "", unused: tuple[str, ...] = ()) -> torch.nn.Module:
    """Load the weights of a part. Those that begin with one of `unused` are not in the graph."""
    weights = read_weights(part)
    names = [name for name in module.state_dict() if not name.startswith(unused)]
    state = {name: weights[name if name in weights else prefix + name] for name in names}
    shaped = {name: value.reshape(module.state_dict()[name].shape) for name, value in state.items()}
    module.load_state_dict(shaped, strict=not unused)
    return module.eval()


def read_json(name: str) -> dict:
    return json.loads((MODEL / name).read_text())


def main(target: str) -> None:
    """Save the pipeline. The encoder of the VAE has random weights: no image from a prompt needs it."""
    config = CLIPTextConfig(**read_json("text_encoder/config.json"))
    pipe = StableDiffusionPipeline(
        text_encoder=load(CLIPTextModel(config), "text_encoder", "text_model."),
        unet=load(UNet2DConditionModel.from_config(read_json("unet/config.json")), "unet"),
        vae=load(
            AutoencoderKL.from_config(read_json("vae_decoder/config.json")),
            "vae_decoder",
            unused=("encoder.", "quant_"),
        ),
        scheduler=DPMSolverMultistepScheduler.from_config(read_json("scheduler/scheduler_config.json")),
        tokenizer=CLIPTokenizer.from_pretrained(MODEL / "tokenizer"),
        safety_checker=None,
        feature_extractor=None,
        requires_safety_checker=False,
    )
    pipe.save_pretrained(target)


if __name__ == "__main__":
    main(sys.argv[1])
