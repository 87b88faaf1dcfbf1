"""An adapter (LoRA) for a model that is there already: trained on the model's own pictures, drawn over in a style.

All it needs is the model's directory: the pictures to be learned come out of it, its vae_encoder makes latents of them,
and its UNet gets its weights back from the ONNX file. No font and no table of names.
"""

import json
from collections.abc import Callable
from dataclasses import astuple, dataclass
from importlib.resources import files
from pathlib import Path

import numpy as np
import onnx
import torch
from diffusers import UNet2DConditionModel
from onnx import numpy_helper
from safetensors.torch import save_file
from torch import nn

from train_emoji.captions import with_article
from train_emoji.evaluation import OnnxModel, Sampling, load_graph
from train_emoji.noise_schedule import TRAIN_STEPS, signal_and_noise
from train_emoji.things import COLOR_NAMES
from train_emoji.tokenizer import PromptTokenizer

Style = Callable[[np.ndarray], np.ndarray]

_LAYERS = ("to_q", "to_k", "to_v", "to_out.0", "ff.net.0.proj", "ff.net.2")
_BATCH = 16


def mosaic(pictures: np.ndarray) -> np.ndarray:
    """Squares of 8 pixels, one color each, of few colors: pictures as in games of the eighties."""
    rows, height, width, channels = pictures.shape
    blocks = pictures.reshape(rows, height // 8, 8, width // 8, 8, channels).mean((2, 4))
    return (np.round(blocks * 5) / 5).repeat(8, 1).repeat(8, 2)


def sunset(pictures: np.ndarray) -> np.ndarray:
    """Two inks: from deep purple, where a picture is dark, to pale orange, where it is light."""
    light = (pictures @ np.array([0.299, 0.587, 0.114]))[..., None]
    dark, pale = np.array([0.16, 0.04, 0.32]), np.array([1.0, 0.80, 0.42])
    middle = np.array([0.86, 0.22, 0.36])
    lower, upper = np.minimum(light * 2, 1), np.maximum(light * 2 - 1, 0)
    return (dark + (middle - dark) * lower) * (upper == 0) + (middle + (pale - middle) * upper) * (upper > 0)


STYLES: dict[str, Style] = {"pixels": mosaic, "sunset": sunset}


def make_prompts(count: int, seed: int) -> list[str]:
    """Prompts as the model was trained with, of things and colors in random order."""
    lines = files("train_emoji").joinpath("things.txt").read_text().splitlines()
    nouns = [line.split(":")[1].split("|")[0] for line in lines]
    rng = np.random.default_rng(seed)
    chosen = [(nouns[rng.integers(len(nouns))], COLOR_NAMES[rng.integers(len(COLOR_NAMES))]) for _ in range(count)]
    return [f"{with_article(noun)} on {with_article(color)} background" for noun, color in chosen]


def draw_pictures(model: Path, prompts: list[str], threads: int) -> np.ndarray:
    """What the model makes of them: float32 [prompts, side, side, 3] in 0…1."""
    onnx_model = OnnxModel(model, "int8", threads)
    sampling = Sampling(steps=12)
    starts = range(0, len(prompts), _BATCH)
    drawn = [onnx_model.make_pictures(prompts[start : start + _BATCH], 9000 + start, sampling) for start in starts]
    return np.concatenate(drawn)


def encode_pictures(model: Path, pictures: np.ndarray, threads: int) -> np.ndarray:
    """Scaled latents, the means of what the encoder gives: float32 [pictures, 4, side / 8, side / 8]."""
    encoder = load_graph(model / "vae_encoder/model.onnx", threads)
    factor = json.loads((model / "vae_encoder/config.json").read_text())["scaling_factor"]
    samples = (pictures * 2 - 1).transpose(0, 3, 1, 2).astype(np.float32)
    found = [encoder.run(None, {"sample": samples[at : at + _BATCH]})[0] for at in range(0, len(samples), _BATCH)]
    return np.concatenate(found)[:, :4] * np.float32(factor)


def load_unet(model: Path) -> UNet2DConditionModel:
    """The UNet in torch, with the weights of its INT8 graph."""
    unet = UNet2DConditionModel.from_config(json.loads((model / "unet/config.json").read_text()))
    weights = _read_weights(model / "unet/model_int8.onnx")
    state = {name: weights[name].reshape(value.shape) for name, value in unet.state_dict().items()}
    unet.load_state_dict(state)
    return unet.requires_grad_(requires_grad=False)


def _read_weights(file: Path) -> dict[str, torch.Tensor]:
    """By their names in torch. The exporter keeps those of matrices and norms in the names of nodes."""
    graph = onnx.load(file).graph
    arrays = {weight.name: numpy_helper.to_array(weight) for weight in graph.initializer}
    for name in [name for name in arrays if name.endswith("_q") and f"{name[:-2]}_s" in arrays]:
        arrays[name[:-2]] = arrays[name].astype(np.float32) * arrays[f"{name[:-2]}_s"]
    named = {name.removeprefix("m."): torch.tensor(array) for name, array in arrays.items()}
    for node in graph.node:
        path = node.name.strip("/").replace("/", ".").rpartition(".")[0].removeprefix("m.")
        weight = next((name for name in node.input if name.startswith("onnx::") and name in arrays), None)
        if weight is None:
            continue
        value = torch.tensor(arrays[weight])
        kind = "bias" if node.op_type == "Add" else "weight"
        named[f"{path}.{kind}"] = value.T if node.op_type == "MatMul" else value.flatten()
    return named


class Adapter(nn.Module):
    """Adds up · down to the layers of attention of a UNet."""

    def __init__(self, unet: UNet2DConditionModel, rank: int) -> None:
        super().__init__()
        self.downs, self.ups = nn.ParameterDict(), nn.ParameterDict()
        for name, layer in unet.named_modules():
            if not isinstance(layer, nn.Linear) or not name.endswith(_LAYERS):
                continue
            key = name.replace(".", "/")
            self.downs[key] = nn.Parameter(torch.randn(rank, layer.in_features) / layer.in_features**0.5)
            self.ups[key] = nn.Parameter(torch.zeros(layer.out_features, rank))
            layer.register_forward_hook(self._hook(key))

    def _hook(self, key: str) -> Callable[..., torch.Tensor]:
        def add(_layer: nn.Module, inputs: tuple[torch.Tensor, ...], output: torch.Tensor) -> torch.Tensor:
            return output + inputs[0] @ self.downs[key].T @ self.ups[key].T

        return add

    def save(self, file: Path, metadata: dict[str, str]) -> None:
        """As diffusers saves it, in float16."""
        tensors = {}
        for key, down in self.downs.items():
            name = f"unet.{key.replace('/', '.')}"
            tensors[f"{name}.lora_A.weight"] = down.detach().half()
            tensors[f"{name}.lora_B.weight"] = self.ups[key].detach().half()
        file.parent.mkdir(parents=True, exist_ok=True)
        save_file(tensors, file, metadata={"format": "pt", **metadata})


@dataclass(frozen=True)
class AdapterRecipe:
    """How an adapter is trained."""

    style: str
    pictures: int = 240
    steps: int = 260
    rank: int = 4
    seed: int = 1


def train_adapter(model: Path, recipe: AdapterRecipe, threads: int) -> Adapter:
    """Draws, encodes and trains; says the loss now and then."""
    style, pictures, steps, rank, seed = astuple(recipe)
    prompts = make_prompts(pictures, seed)
    latents = encode_pictures(model, STYLES[style](draw_pictures(model, prompts, threads)), threads)
    print(f"{pictures} pictures drawn", flush=True)
    tokenizer = PromptTokenizer(model / "tokenizer")
    encoder = load_graph(model / "text_encoder/model_int8.onnx", threads)
    texts = np.concatenate([encoder.run(None, {"input_ids": tokenizer([text])})[0] for text in ["", *prompts]])
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    unet = load_unet(model)
    adapter = Adapter(unet, rank)
    optimizer = torch.optim.AdamW(adapter.parameters(), lr=2e-3, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=steps, pct_start=0.1)
    losses = []
    for step in range(steps):
        rows = rng.integers(len(latents), size=_BATCH)
        # Without a text as often as the model was trained so.
        text = texts[np.where(rng.random(_BATCH) < 0.1, 0, rows + 1)]
        timesteps = ((np.arange(_BATCH) + rng.random(_BATCH)) / _BATCH * TRAIN_STEPS).astype(np.int64)
        signal, spread = (share[timesteps].astype(np.float32)[:, None, None, None] for share in signal_and_noise())
        noise = rng.standard_normal(latents[rows].shape, np.float32)
        noisy, wanted = signal * latents[rows] + spread * noise, signal * noise - spread * latents[rows]
        found = unet(torch.tensor(noisy), torch.tensor(timesteps), torch.tensor(text)).sample
        loss = (found - torch.tensor(wanted)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        if (step + 1) % 50 == 0:
            print(f"step {step + 1} of {steps}: loss {np.mean(losses[-50:]):.4f}", flush=True)
    return adapter
