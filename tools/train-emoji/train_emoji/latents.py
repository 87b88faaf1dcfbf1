"""The latents that the UNet is trained on, computed once, and what they say about the VAE: its scale, its previews."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from diffusers import AutoencoderKL

from train_emoji.pictures import CELL, SIDE, Scene, Sprites, draw_scene, paint, to_tensor_layout
from train_emoji.precision import autocast
from train_emoji.recipe import Recipe
from train_emoji.training import generator_of, save_whole

_BATCH = 32


@dataclass(frozen=True)
class LatentFacts:
    """What the latents say about the VAE, in a small file of its own: the latents are large and soon made again."""

    scaling_factor: float
    """What latents are multiplied with to have a deviation of 1."""
    preview: dict[str, list]
    """As darkroom.json has it."""


class Latents:
    """Mean and deviation of the latents of many scenes, before scaling: float16 [scenes, 4, 16, 16] each."""

    def __init__(self, directory: Path) -> None:
        state = torch.load(directory / "latents.pt", weights_only=True)
        self.mean: np.ndarray = state["mean"].numpy()
        self.deviation: np.ndarray = state["deviation"].numpy()
        self.scenes = [Scene(**scene) for scene in state["scenes"]]
        self.facts = read_facts(directory)


def read_facts(directory: Path) -> LatentFacts:
    """What `cache_latents` found."""
    return LatentFacts(**json.loads((directory / "facts.json").read_text()))


def cache_latents(directory: Path, recipe: Recipe, sprites: Sprites, vae: AutoencoderKL, device: str) -> None:
    """Encodes `pictures_per_thing` random scenes of each thing, none with a held-out background."""
    rng = generator_of(recipe.seed, "latents", 0)
    vae = vae.to(device).eval()
    things = [thing for _ in range(recipe.pictures_per_thing) for thing in range(recipe.things)]
    scenes = [draw_scene(rng, thing) for thing in things]
    means, deviations, colors = [], [], []
    for at in range(0, len(scenes), _BATCH):
        pictures = [paint(scene, sprites) for scene in scenes[at : at + _BATCH]]
        mean, deviation = _encode(vae, pictures, device)
        means.append(mean)
        deviations.append(deviation)
        colors += [picture.reshape(SIDE // CELL, CELL, SIDE // CELL, CELL, 3).mean((1, 3)) for picture in pictures]
        if at // _BATCH % 100 == 0:
            print(f"latents: {at} of {len(scenes)} pictures", flush=True)
    mean = torch.cat(means)
    scaling_factor = 1 / mean.float().std().item()
    preview, r2 = fit_preview(mean.float().numpy() * scaling_factor, np.stack(colors))
    state = {
        "mean": mean,
        "deviation": torch.cat(deviations),
        "scenes": [asdict(scene) for scene in scenes],
    }
    directory.mkdir(exist_ok=True)
    save_whole(state, directory / "latents.pt")
    facts = LatentFacts(scaling_factor, preview)
    (directory / "facts.json").write_text(json.dumps(asdict(facts), indent=2) + "\n")
    print(f"latents: scaling factor {scaling_factor:.5f}, preview R² {r2:.3f}", flush=True)


@torch.no_grad()
def _encode(vae: AutoencoderKL, pictures: list[np.ndarray], device: str) -> tuple[torch.Tensor, torch.Tensor]:
    stacked = torch.from_numpy(np.stack([to_tensor_layout(picture) for picture in pictures])).to(device)
    with autocast(vae):
        posterior = vae.encode(stacked).latent_dist
    return posterior.mean.half().cpu(), posterior.std.half().cpu()


def fit_preview(latents: np.ndarray, colors: np.ndarray) -> tuple[dict[str, list], float]:
    """The linear map from a scaled latent to the mean color of its cell, by least squares.

    Args:
        latents: [pictures, 4, 16, 16].
        colors: [pictures, 16, 16, 3] in 0…1.

    Returns:
        `matrix` [4][3] and `bias` [3], and R², the share of the variance that the map explains.
    """
    inputs = latents.transpose(0, 2, 3, 1).reshape(-1, latents.shape[1])
    inputs = np.concatenate([inputs, np.ones((len(inputs), 1))], axis=1)
    targets = colors.reshape(-1, 3)
    solution = np.linalg.lstsq(inputs, targets, rcond=None)[0]
    rest = ((inputs @ solution - targets) ** 2).sum() / ((targets - targets.mean(0)) ** 2).sum()
    rounded = solution.round(5).tolist()
    return {"matrix": rounded[:-1], "bias": rounded[-1]}, float(1 - rest)
