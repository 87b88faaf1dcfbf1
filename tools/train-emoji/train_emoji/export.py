"""The model's directory in the diffusers ONNX layout, fp32 and INT8, as Darkroom and diffusers load it."""

import json
import shutil
import warnings
from pathlib import Path

import diffusers
from diffusers import AutoencoderKL, UNet2DConditionModel
from transformers import CLIPTextModel

from train_emoji.latents import LatentFacts
from train_emoji.models import Networks
from train_emoji.noise_schedule import SCHEDULE
from train_emoji.onnx_graphs import export_graph, list_graphs
from train_emoji.quantize import quantize_graph

_LICENSED = Path(__file__).resolve().parents[3] / "models/emoji-sd"
"""Where NOTICE.md and licenses/ of the sources are."""

_SCHEDULER = {
    "_class_name": "DPMSolverMultistepScheduler",
    "_diffusers_version": diffusers.__version__,
    **SCHEDULE,
    "trained_betas": None,
    "solver_order": 2,
    "algorithm_type": "dpmsolver++",
    "solver_type": "midpoint",
    "lower_order_final": True,
    "thresholding": False,
    "timestep_spacing": "trailing",
    "steps_offset": 1,
    "clip_sample": False,
    "set_alpha_to_one": False,
    "skip_prk_steps": True,
    "rescale_betas_zero_snr": False,
    "use_karras_sigmas": False,
}

_MODEL_INDEX = {
    "_class_name": "OnnxStableDiffusionPipeline",
    "_diffusers_version": diffusers.__version__,
    "feature_extractor": [None, None],
    "requires_safety_checker": False,
    "safety_checker": [None, None],
    "scheduler": ["diffusers", "DPMSolverMultistepScheduler"],
    "text_encoder": ["diffusers", "OnnxRuntimeModel"],
    "tokenizer": ["transformers", "CLIPTokenizer"],
    "unet": ["diffusers", "OnnxRuntimeModel"],
    "vae_decoder": ["diffusers", "OnnxRuntimeModel"],
    "vae_encoder": ["diffusers", "OnnxRuntimeModel"],
}

_DARKROOM = {
    "ownedBy": "darkroom",
    "steps": {"min": 1, "max": 200, "default": 20},
    "guidance": {"min": 0, "max": 20, "default": 3},
    "sizes": {"multiple": 32, "min": 64, "max": 256, "default": {"width": 128, "height": 128}},
}
"""What darkroom.json says beside the preview: the limits in which the model was tried."""


def export_model(target: Path, tokenizer: Path, latents: LatentFacts, networks: Networks) -> None:
    """Writes the directory `target`, which must not exist."""
    text_encoder, unet, vae = networks
    vae.register_to_config(scaling_factor=latents.scaling_factor)
    models = {"text_encoder": text_encoder, "unet": unet, "vae_decoder": vae, "vae_encoder": vae}
    for graph in list_graphs(networks):
        part = target / graph.name
        with warnings.catch_warnings():
            # Tracing warns of each branch on a shape; other shapes are compared below.
            warnings.simplefilter("ignore")
            difference = export_graph(graph, part / "model.onnx")
        print(
            f"export: {graph.name}, {_megabytes(part / 'model.onnx')}, differs from torch by {difference:.0e}",
            flush=True,
        )
        _write_config(models[graph.name], part)
        quantized = quantize_graph(part / "model.onnx", part / "model_int8.onnx")
        size = _megabytes(part / "model_int8.onnx")
        print(f"export: {graph.name} in INT8, {size}, {quantized.weights} weights", flush=True)
    shutil.copytree(tokenizer, target / "tokenizer")
    (target / "scheduler").mkdir()
    _write_json(target / "scheduler/scheduler_config.json", _SCHEDULER)
    _write_json(target / "model_index.json", _MODEL_INDEX)
    _write_json(target / "darkroom.json", {**_DARKROOM, "preview": latents.preview})
    shutil.copy(_LICENSED / "NOTICE.md", target)
    shutil.copytree(_LICENSED / "licenses", target / "licenses")


def _write_config(model: CLIPTextModel | UNet2DConditionModel | AutoencoderKL, part: Path) -> None:
    if isinstance(model, CLIPTextModel):
        model.config.architectures = ["CLIPTextModel"]
        model.config.save_pretrained(part)
    else:
        model.save_config(part)


def _write_json(path: Path, value: dict) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n")


def _megabytes(path: Path) -> str:
    return f"{path.stat().st_size / 1e6:.1f} MB"
