"""Judges a model's directory by its ONNX files alone: recognized pictures, the VAE's loss, what INT8 changes."""

import json
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnxruntime

from train_emoji.captions import held_out_prompt
from train_emoji.noise_schedule import signal_and_noise, trailing_timesteps
from train_emoji.pictures import CELL, SHADE_DEVIATION, SIDE, Scene, Sprites, paint, to_tensor_layout
from train_emoji.recognition import Recognizer, find_color
from train_emoji.things import COLOR_NAMES, Thing, held_out_pairs
from train_emoji.tokenizer import PromptTokenizer

FILES = {"fp32": "model.onnx", "int8": "model_int8.onnx"}
"""The graphs of a variant."""

_BATCH = 16


@dataclass(frozen=True)
class Sampling:
    """How pictures are made for judging: with DDIM, each from a seed of its own."""

    steps: int = 20
    guidance: float = 3.0
    seed: int = 50_000


class OnnxModel:
    """One variant of a model, to be run on the CPU."""

    def __init__(self, directory: Path, variant: str, threads: int) -> None:
        self._text_encoder, self._unet, self._decoder = (
            load_graph(directory / part / FILES[variant], threads) for part in ("text_encoder", "unet", "vae_decoder")
        )
        self._tokenizer = PromptTokenizer(directory / "tokenizer")
        self._scaling_factor = json.loads((directory / "vae_decoder/config.json").read_text())["scaling_factor"]

    def make_pictures(self, prompts: list[str], first_seed: int, sampling: Sampling) -> np.ndarray:
        """Float32 [prompts, SIDE, SIDE, 3] in 0…1; seeds count up from the first."""
        count = len(prompts)
        text = self._text_encoder.run(None, {"input_ids": self._tokenizer([*[""] * count, *prompts])})[0]
        shape = (4, SIDE // CELL, SIDE // CELL)
        latents = np.stack([np.random.default_rng(first_seed + at).standard_normal(shape) for at in range(count)])
        signal, noise = signal_and_noise()
        timesteps = trailing_timesteps(sampling.steps)
        for at, timestep in enumerate(timesteps):
            feeds = {
                "sample": np.concatenate([latents, latents]).astype(np.float32),
                "timestep": np.full(2 * count, timestep),
                "encoder_hidden_states": text,
            }
            without, with_text = np.split(self._unet.run(None, feeds)[0], 2)
            v = without + sampling.guidance * (with_text - without)
            clean = signal[timestep] * latents - noise[timestep] * v
            left = noise[timestep] * latents + signal[timestep] * v
            following = timesteps[at + 1] if at + 1 < len(timesteps) else 0
            latents = signal[following] * clean + noise[following] * left
        return self.decode((latents / self._scaling_factor).astype(np.float32))

    def decode(self, latents: np.ndarray) -> np.ndarray:
        """Latents [rows, 4, h, w] before scaling to pictures [rows, 8·h, 8·w, 3] in 0…1."""
        decoded = self._decoder.run(None, {"latent_sample": latents})[0]
        return np.clip(decoded / 2 + 0.5, 0, 1).transpose(0, 2, 3, 1)


def load_graph(path: Path, threads: int) -> onnxruntime.InferenceSession:
    """A graph on the CPU."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def recognize_held_out(
    model: OnnxModel, things: tuple[Thing, ...], sprites: Sprites, sampling: Sampling, pairs: int
) -> dict[str, float | int | list[str]]:
    """Makes pictures of held-out pairs, spread over all of them, and looks at what they show.

    Returns:
        `pairs`, how many; `background` and `thing`, the shares that show what was asked for; `misses`, the others;
        `seconds` of computing a picture.
    """
    recognizer = Recognizer(sprites)
    wanted = spread(held_out_pairs(len(things)), pairs)
    found: list[tuple[int, int]] = []
    seconds = 0.0
    for at in range(0, len(wanted), _BATCH):
        prompts = [held_out_prompt(things, *pair) for pair in wanted[at : at + _BATCH]]
        began = time.perf_counter()
        pictures = model.make_pictures(prompts, sampling.seed + at, sampling)
        seconds += time.perf_counter() - began
        found += [(recognizer.find_thing(picture), find_color(picture)) for picture in pictures]
    rows = list(zip(wanted, found, strict=True))
    return {
        "pairs": len(rows),
        "background": sum(asked[1] == seen[1] for asked, seen in rows) / len(rows),
        "thing": sum(asked[0] == seen[0] for asked, seen in rows) / len(rows),
        "misses": [f"{_name(things, asked)} → {_name(things, seen)}" for asked, seen in rows if asked != seen],
        "seconds": seconds / len(rows),
    }


def measure_vae(directory: Path, variant: str, sprites: Sprites, threads: int) -> float:
    """PSNR, in dB, of pictures of every fourth held-out pair that were encoded and decoded again."""
    rng = np.random.default_rng(0)
    scenes = [
        Scene(thing, color, gradient=False, size="medium", shade=tuple(rng.normal(0, SHADE_DEVIATION, 3)))
        for thing, color in held_out_pairs(len(sprites))[::4]
    ]
    pictures = np.stack([paint(scene, sprites) for scene in scenes])
    encoder = load_graph(directory / "vae_encoder" / FILES[variant], threads)
    decoder = OnnxModel(directory, variant, threads)
    again = []
    for at in range(0, len(pictures), _BATCH):
        batch = np.stack([to_tensor_layout(picture) for picture in pictures[at : at + _BATCH]])
        mean = encoder.run(None, {"sample": batch})[0][:, :4]
        again.append(decoder.decode(mean))
    return float(psnr(np.concatenate(again)[None], pictures[None])[0])


def compare_pictures(
    first: OnnxModel, second: OnnxModel, things: tuple[Thing, ...], sampling: Sampling, pairs: int
) -> np.ndarray:
    """PSNR, in dB, between the pictures that two variants make of the same prompts and seeds: one a picture."""
    prompts = [held_out_prompt(things, *pair) for pair in spread(held_out_pairs(len(things)), pairs)]
    return psnr(*(model.make_pictures(prompts, sampling.seed, sampling) for model in (first, second)))


def psnr(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Peak signal-to-noise ratio, in dB, of things in 0…1 along the first axis; of equal ones it is infinite."""
    error = np.square(first.astype(np.float64) - second).reshape(len(first), -1).mean(1)
    with np.errstate(divide="ignore"):
        return -10 * np.log10(error)


def spread(rows: list, count: int) -> list:
    """At most `count` of the rows, evenly from first to last."""
    return [rows[at * len(rows) // count] for at in range(count)] if count < len(rows) else rows


def _name(things: tuple[Thing, ...], pair: tuple[int, int]) -> str:
    return f"{things[pair[0]].nouns[0]} on {COLOR_NAMES[pair[1]]}"
