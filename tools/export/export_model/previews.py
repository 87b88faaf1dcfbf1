"""The numbers by which Darkroom shows an image before it is decoded: `preview` in darkroom.json.

A preview is a linear map from each scaled latent to one pixel. It is fitted by least squares to what the model's own
decoder makes of random latents, averaged over the pixels of each latent. White noise alone is not what latents look
like: they are noise on four scales, which gave the embedded model nearly the numbers that its own images had given.
"""

import json
from pathlib import Path

import numpy as np
import onnxruntime

_SIDE = 16
"""Of the latents that are decoded at a time: small, so that a decoder of any size takes it."""
_SCALES = (1, 2, 4, 16)
"""Sides of the squares of equal numbers that the noise is made of."""
_SAMPLES_PER_NUMBER = 256
_DIGITS = 5


def add_preview(model: Path) -> float | None:
    """Fits the map and writes it into the model's darkroom.json.

    Returns:
        R², the share of the variance that the map explains; None if darkroom.json has a `preview` already.

    Raises:
        SystemExit: the decoder or its configuration is missing.
    """
    file = model / "darkroom.json"
    settings = json.loads(file.read_text()) if file.exists() else {}
    if "preview" in settings:
        return None
    config = model / "vae_decoder/config.json"
    graphs = [model / "vae_decoder" / name for name in ("model.onnx", "model_fp16.onnx", "model_int8.onnx")]
    graph = next((graph for graph in graphs if graph.exists()), None)
    if graph is None or not config.exists():
        raise SystemExit(f"{model}: vae_decoder/ lacks {'a graph' if graph is None else 'config.json'}")
    settings["preview"], explained = fit_preview(graph, json.loads(config.read_text()))
    file.write_text(json.dumps(settings, indent=2) + "\n")
    return explained


def fit_preview(graph: Path, config: dict, seed: int = 0) -> tuple[dict[str, list], float]:
    """Returns `matrix` [channels][3] and `bias` [3], and R². `config` is the decoder's config.json."""
    session = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    channels = config["latent_channels"]
    generator = np.random.default_rng(seed)
    calls = -(-_SAMPLES_PER_NUMBER * (channels + 1) // _SIDE**2)
    latents, colors = [], []
    for _ in range(max(calls, 8)):
        drawn = draw_latents(generator, channels)
        latents.append(drawn.reshape(channels, -1).T)
        colors.append(decode_colors(session, drawn, config).reshape(3, -1).T)
    inputs, targets = np.concatenate(latents), np.concatenate(colors)
    inputs = np.concatenate([inputs, np.ones((len(inputs), 1))], axis=1)
    solution = np.linalg.lstsq(inputs, targets, rcond=None)[0]
    rest = ((inputs @ solution - targets) ** 2).sum() / ((targets - targets.mean(0)) ** 2).sum()
    rounded = solution.round(_DIGITS).tolist()
    return {"matrix": rounded[:-1], "bias": rounded[-1]}, float(1 - rest)


def draw_latents(generator: np.random.Generator, channels: int) -> np.ndarray:
    """Scaled latents of variance 1 [channels, 16, 16]: the sum of noise on several scales."""
    latents = np.zeros((channels, _SIDE, _SIDE))
    for scale in _SCALES:
        noise = generator.standard_normal((channels, _SIDE // scale, _SIDE // scale))
        latents += noise.repeat(scale, axis=1).repeat(scale, axis=2)
    return latents / np.sqrt(len(_SCALES))


def decode_colors(session: onnxruntime.InferenceSession, latents: np.ndarray, config: dict) -> np.ndarray:
    """RGB in 0…1 [3, 16, 16]: scaled latents, decoded and averaged over the pixels of each."""
    # What diffusers takes where a configuration has no scale.
    unscaled = latents / config.get("scaling_factor", 0.18215) + (config.get("shift_factor") or 0)
    (fed,) = session.get_inputs()
    dtype = np.float16 if fed.type == "tensor(float16)" else np.float32
    (image,) = session.run(None, {fed.name: unscaled[None].astype(dtype)})[0].astype(np.float32)
    factor = image.shape[1] // _SIDE
    cells = np.clip(image / 2 + 0.5, 0, 1).reshape(3, _SIDE, factor, _SIDE, factor)
    return cells.mean(axis=(2, 4))
