"""A small network that makes the model's pictures twice as large, as the font would have drawn them in that size.

Sub-pixel convolution (Shi et al. 2016, "Real-Time Single Image and Video Super-Resolution"), which learns what to add
to a linear filter.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import nn

from train_emoji.evaluation import load_graph
from train_emoji.onnx_graphs import Graph, export_graph
from train_emoji.pictures import SHADE_DEVIATION, Scene, Sprites, draw_scene, paint, to_tensor_layout
from train_emoji.things import Thing, held_out_pairs
from train_emoji.training import Batch, Stage, generator_of

SCALE = 2
_CROP = 32
_PAIRS_AT_ONCE = 8

Pairs = tuple[np.ndarray, np.ndarray]
"""Pictures and the same ones larger: uint8 [pairs, side, side, 3]."""


class Upscaler(nn.Module):
    """From RGB in 0…1 to RGB of twice the side. What it gives may be a little out of that range."""

    def __init__(self, width: int = 24, layers: int = 3) -> None:
        super().__init__()
        # Leaky: with plain ones all of a layer die in the first steps of one run, and nothing is learned any more.
        inner = [part for _ in range(layers) for part in (nn.Conv2d(width, width, 3, padding=1), nn.LeakyReLU(0.1))]
        self.body = nn.Sequential(nn.Conv2d(3, width, 5, padding=2), nn.LeakyReLU(0.1), *inner)
        self.head = nn.Conv2d(width, 3 * SCALE**2, 3, padding=1)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)
        self.shuffle = nn.PixelShuffle(SCALE)
        # Bicubic scaling, until `fit_linear` has found a better filter. The rest learns what is left to add.
        self.edge = nn.ReplicationPad2d(2)
        self.linear = nn.Conv2d(3, 3 * SCALE**2, 5, bias=False)
        self.linear.weight.data = _bicubic_weights()
        self.linear.requires_grad_(False)

    def forward(self, pixel_values: torch.Tensor) -> torch.Tensor:
        """[pictures, 3, height, width] to [pictures, 3, 2 · height, 2 · width]."""
        return self.shuffle(self.linear(self.edge(pixel_values)) + self.head(self.body(pixel_values)))


def _bicubic_weights() -> torch.Tensor:
    """[12, 3, 5, 5]: of each color the four pixels that one becomes, a quarter of it off its middle each way."""
    phases = [torch.tensor([_keys(tap - off) for tap in range(-2, 3)]) for off in (-0.25, 0.25)]
    planes = torch.stack([torch.outer(down, right) for down in phases for right in phases])
    weights = torch.zeros(3, SCALE**2, 3, 5, 5)
    for color in range(3):
        weights[color, :, color] = planes
    return weights.flatten(0, 1)


def fit_linear(pairs: Pairs, seed: int, samples: int = 120_000) -> torch.Tensor:
    """[12, 3, 5, 5]: the filter with the least squares of errors, at pixels drawn from the pairs."""
    small, large = pairs
    rng = generator_of(seed, "upscaler-linear", 0)
    picture = rng.integers(len(small), size=samples)
    top, left = rng.integers(2, small.shape[1] - 2, (2, samples))
    taps = [small[picture, top + down, left + right] for down in range(-2, 3) for right in range(-2, 3)]
    wanted = [
        large[picture, SCALE * top + down, SCALE * left + right] for down in range(SCALE) for right in range(SCALE)
    ]
    # As the weights of a convolution lie: color by color.
    inputs = np.stack(taps, -1).reshape(samples, -1) / 255
    outputs = np.stack(wanted, -1).reshape(samples, -1) / 255
    bicubic = _bicubic_weights().flatten(1).numpy().T.astype(np.float64)
    products = inputs.T @ inputs + 1e-4 * samples * np.eye(inputs.shape[1])
    change = np.linalg.solve(products, inputs.T @ (outputs - inputs @ bicubic))
    return torch.from_numpy((bicubic + change).T.astype(np.float32)).reshape(3 * SCALE**2, 3, 5, 5)


def _keys(distance: float) -> float:
    """Keys' kernel with a = -0.5, as Pillow has it."""
    x = abs(distance)
    if x < 1:
        return (1.5 * x - 2.5) * x * x + 1
    return ((-0.5 * x + 2.5) * x - 4) * x + 2 if x < 2 else 0.0


@dataclass(frozen=True)
class Vae:
    """The VAE of a model's directory, which softens what goes through it as it does the model's own pictures."""

    model: Path
    threads: int

    def soften(self, pictures: np.ndarray) -> np.ndarray:
        """Through the VAE and back: float32 [pictures, side, side, 3] in 0…1."""
        encoder = load_graph(self.model / "vae_encoder/model.onnx", self.threads)
        decoder = load_graph(self.model / "vae_decoder/model_int8.onnx", self.threads)
        softened = []
        for first in range(0, len(pictures), _PAIRS_AT_ONCE):
            batch = np.stack([to_tensor_layout(picture) for picture in pictures[first : first + _PAIRS_AT_ONCE]])
            latents = encoder.run(None, {encoder.get_inputs()[0].name: batch})[0][:, :4]
            decoded = decoder.run(None, {decoder.get_inputs()[0].name: latents})[0]
            softened.append((decoded / 2 + 0.5).clip(0, 1).transpose(0, 2, 3, 1))
        return np.concatenate(softened)


def make_pairs(scenes: list[Scene], sprites: Sprites, larger: Sprites, vae: Vae | None) -> Pairs:
    """Scenes as the model would show them, without a VAE as they are drawn, and as they are drawn in twice the size."""
    small = np.stack([paint(scene, sprites) for scene in scenes])
    if vae is not None:
        small = vae.soften(small)
    large = np.stack([_bytes_of(paint(scene, larger, SCALE)) for scene in scenes])
    return _bytes_of(small), large


def training_scenes(count: int, things: tuple[Thing, ...], seed: int) -> list[Scene]:
    """Scenes of all things, and none of the held-out pairs."""
    rng = generator_of(seed, "upscaler-scenes", 0)
    return [draw_scene(rng, at % len(things)) for at in range(count)]


def held_out_scenes(things: tuple[Thing, ...], seed: int) -> list[Scene]:
    """One of each thing, on a color that it is never seen on."""
    scenes = []
    for at, (thing, color) in enumerate(held_out_pairs(len(things))):
        rng = generator_of(seed, "upscaler-held-out", at)
        red, green, blue = (float(value) for value in rng.normal(0, SHADE_DEVIATION, 3))
        size = str(rng.choice(["medium", "big", "small"]))
        scenes.append(Scene(thing, color, bool(rng.random() < 0.3), size, shade=(red, green, blue)))
    return scenes


class UpscalerTraining(Stage):
    """Crops of pairs."""

    name = "upscaler"
    warmup, hold, floor, averaging = 0.02, 0.3, 0.01, 0.995

    def __init__(self, pairs: Pairs, steps: int, seed: int = 0, batch: int = 8) -> None:
        self._pairs, self._seed, self._batch = pairs, seed, batch
        self.steps, self.rate = steps, 1.5e-3
        torch.manual_seed(seed)
        self.modules = nn.ModuleDict({"upscaler": Upscaler()})
        self.modules["upscaler"].linear.weight.data = fit_linear(pairs, seed)
        trained = [value for value in self.modules.parameters() if value.requires_grad]
        self.optimizers = [torch.optim.AdamW(trained, betas=(0.9, 0.99), weight_decay=1e-4)]

    def __getitem__(self, step: int) -> dict[str, np.ndarray]:
        """Crops, turned over and around: edges of all directions."""
        rng = generator_of(self._seed, self.name, step)
        crops = [self._crop(rng) for _ in range(self._batch)]
        small, large = (np.stack(each).astype(np.float32) / 255 for each in zip(*crops, strict=True))
        return {"small": small, "large": large}

    def _crop(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        at = int(rng.integers(len(self._pairs[0])))
        top, left = (int(value) for value in rng.integers(0, self._pairs[0].shape[1] - _CROP + 1, 2))
        turns, flips = int(rng.integers(4)), bool(rng.integers(2))
        cropped = []
        for pictures, scale in zip(self._pairs, (1, SCALE), strict=True):
            rows = slice(top * scale, (top + _CROP) * scale)
            columns = slice(left * scale, (left + _CROP) * scale)
            crop = np.rot90(pictures[at, rows, columns], turns)
            cropped.append(np.ascontiguousarray((crop[:, ::-1] if flips else crop).transpose(2, 0, 1)))
        return cropped[0], cropped[1]

    def loss(self, batch: Batch) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        """L1 + 4 · L2: the larger its errors, the more a picture is judged by them."""
        error = self.modules["upscaler"](batch["small"]) - batch["large"]
        l1, l2 = error.abs().mean(), error.square().mean()
        return l1 + 4 * l2, {"L1": l1, "PSNR": -10 * torch.log10(l2)}


def export_upscaler(upscaler: Upscaler, folder: Path) -> None:
    """Writes the folder in the layout of transformers' super-resolution, as Optimum exports it."""
    example, other = torch.rand(1, 3, 32, 40), torch.rand(2, 3, 48, 24)
    axes = {0: "batch_size", 2: "height", 3: "width"}
    inputs = {"pixel_values": (example, axes)}
    graph = Graph("upscaler", upscaler, inputs, {"reconstruction": axes}, {"pixel_values": other})
    difference = export_graph(graph, folder / "model.onnx")
    config = {"architectures": ["EmojiUpscaler"], "model_type": "espcn", "num_channels": 3, "upscale": SCALE}
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    size = (folder / "model.onnx").stat().st_size
    print(f"upscaler: {size / 1e3:.0f} kB, differs from torch by {difference:.0e}", flush=True)


def judge_upscaler(graph: Path, pairs: Pairs, threads: int) -> dict[str, float]:
    """Mean PSNR of the larger pictures in 8 bits, in dB: by the network, and by Pillow's bicubic."""
    session = load_graph(graph, threads)
    figures: dict[str, list[float]] = {"upscaler": [], "bicubic": []}
    for small, large in zip(*pairs, strict=True):
        values = session.run(None, {"pixel_values": (small.astype(np.float32) / 255).transpose(2, 0, 1)[None]})[0]
        figures["upscaler"].append(_psnr(_bytes_of(values[0].transpose(1, 2, 0)), large))
        side = large.shape[0]
        figures["bicubic"].append(_psnr(_bicubic(small, side), large))
    return {name: float(np.mean(values)) for name, values in figures.items()}


def _bicubic(small: np.ndarray, side: int) -> np.ndarray:
    return np.asarray(Image.fromarray(small).resize((side, side), Image.Resampling.BICUBIC))


def _bytes_of(pictures: np.ndarray) -> np.ndarray:
    return (pictures.clip(0, 1) * 255).round().astype(np.uint8)


def _psnr(found: np.ndarray, expected: np.ndarray) -> float:
    error = np.mean(((found.astype(np.float64) - expected) / 255) ** 2)
    return -10 * float(np.log10(error)) if error > 0 else float("inf")
