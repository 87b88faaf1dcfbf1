"""Training of the VAE: first all of it, at the end its decoder alone on slightly noisy latents."""

import numpy as np
import torch
from diffusers import AutoencoderKL
from torch import nn

from train_emoji.models import LATENT_CHANNELS, build_vae
from train_emoji.pictures import CELL, SIDE, Sprites, draw_scene, paint, to_tensor_layout
from train_emoji.precision import autocast
from train_emoji.recipe import Recipe
from train_emoji.training import Batch, Stage, generator_of

_CROP = 64
_CROPS_SHARE = 0.55
"""Of the time; on whole pictures a step costs about as much."""


class VaeTraining(Stage):
    """Encoder and decoder on crops of 64 × 64 pixels, then on whole pictures. Without text, held-out pairs are seen."""

    name = "vae"
    warmup, hold, floor, averaging = 0.016, 0.5, 0.03, 0.997

    def __init__(self, recipe: Recipe, sprites: Sprites) -> None:
        self._recipe, self._sprites = recipe, sprites
        self.steps, self.rate = recipe.crop_steps + recipe.vae_steps, recipe.vae_rate
        torch.manual_seed(recipe.seed)
        self.modules = nn.ModuleDict({"vae": build_vae(recipe)})
        self.optimizers = [_adamw(self.modules.parameters())]

    def work(self, step: int) -> float:
        """The two parts are weighed by their time."""
        crops = self._recipe.crop_steps
        if step < crops:
            return _CROPS_SHARE * step / crops
        return _CROPS_SHARE + (1 - _CROPS_SHARE) * (step - crops) / self._recipe.vae_steps

    def __getitem__(self, step: int) -> dict[str, np.ndarray]:
        """Pictures and the noise for sampling their latents."""
        rng = generator_of(self._recipe.seed, self.name, step)
        crops = step < self._recipe.crop_steps
        count = self._recipe.crop_batch if crops else self._recipe.vae_batch
        pictures = [_draw_picture(rng, self._sprites) for _ in range(count)]
        return _with_noise(rng, [_crop(rng, picture) for picture in pictures] if crops else pictures)

    def loss(self, batch: Batch) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        """L1 + L2 + 0.7 · L1 of gradients + 0.0004 · KL."""
        vae = self.modules["vae"]
        with autocast(vae):
            posterior = vae.encode(batch["pictures"]).latent_dist
            decoded = vae.decode(posterior.mean + posterior.std * batch["noise"]).sample
        mean, log_variance = posterior.mean.float(), posterior.logvar.float()
        kl = 0.5 * (mean.square() + log_variance.exp() - 1 - log_variance).mean()
        loss, figures = _reconstruction_loss(decoded, batch["pictures"], edges=0.7)
        return loss + 4e-4 * kl, {**figures, "KL": kl}


class DecoderTraining(Stage):
    """The decoder alone, so that the UNet's latents stay what they are. Noise stands for the UNet's small errors."""

    name = "decoder"
    warmup, hold, floor, averaging = 0.05, 0.0, 0.03, 0.99

    def __init__(self, recipe: Recipe, sprites: Sprites, vae: AutoencoderKL) -> None:
        self._recipe, self._sprites = recipe, sprites
        self.steps, self.rate = recipe.decoder_steps, recipe.decoder_rate
        vae.requires_grad_(True)
        vae.encoder.requires_grad_(False)
        vae.quant_conv.requires_grad_(False)
        self.modules = nn.ModuleDict({"vae": vae})
        self.optimizers = [_adamw([*vae.decoder.parameters(), *vae.post_quant_conv.parameters()])]

    def __getitem__(self, step: int) -> dict[str, np.ndarray]:
        """Whole pictures, and noise of a strength of its own for each."""
        rng = generator_of(self._recipe.seed, self.name, step)
        pictures = [_draw_picture(rng, self._sprites) for _ in range(self._recipe.decoder_batch)]
        batch = _with_noise(rng, pictures)
        strengths = 0.12 * rng.random((len(pictures), 1, 1, 1), np.float32)
        return {**batch, "noise": batch["noise"] * strengths}

    def loss(self, batch: Batch) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        """L1 + L2 + L1 of gradients."""
        vae = self.modules["vae"]
        with autocast(vae):
            with torch.no_grad():
                latents = vae.encode(batch["pictures"]).latent_dist.mean.float() + batch["noise"]
            decoded = vae.decode(latents).sample
        return _reconstruction_loss(decoded, batch["pictures"], edges=1.0)


def _adamw(parameters: list[nn.Parameter]) -> torch.optim.AdamW:
    return torch.optim.AdamW(parameters, betas=(0.9, 0.99), weight_decay=1e-4, fused=True)


def _draw_picture(rng: np.random.Generator, sprites: Sprites) -> np.ndarray:
    scene = draw_scene(rng, int(rng.integers(len(sprites))), held_out=True)
    return to_tensor_layout(paint(scene, sprites))


def _crop(rng: np.random.Generator, picture: np.ndarray) -> np.ndarray:
    """Mostly from the middle, where the thing is."""
    low, high = (8, 57) if rng.random() < 0.8 else (0, SIDE - _CROP + 1)
    top, left = (int(at) for at in rng.integers(low, high, 2))
    return picture[:, top : top + _CROP, left : left + _CROP]


def _with_noise(rng: np.random.Generator, pictures: list[np.ndarray]) -> dict[str, np.ndarray]:
    stacked = np.stack(pictures)
    latent_side = stacked.shape[-1] // CELL
    noise = rng.standard_normal((len(stacked), LATENT_CHANNELS, latent_side, latent_side), np.float32)
    return {"pictures": stacked, "noise": noise}


def _reconstruction_loss(
    decoded: torch.Tensor, pictures: torch.Tensor, *, edges: float
) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    error = decoded.float() - pictures
    l1, l2 = error.abs().mean(), error.square().mean()
    gradient = error.diff(dim=-1).abs().mean() + error.diff(dim=-2).abs().mean()
    psnr = 10 * torch.log10(4 / l2)  # the range is -1…1
    return l1 + l2 + edges * gradient, {"L1": l1, "PSNR": psnr, "edges": gradient}
