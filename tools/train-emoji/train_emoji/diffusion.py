"""Training of UNet and text encoder together, on cached latents."""

import numpy as np
import torch
from torch import nn
from transformers import CLIPTextModel

from train_emoji.captions import write_caption
from train_emoji.latents import Latents
from train_emoji.models import build_unet
from train_emoji.muon import Muon
from train_emoji.noise_schedule import TRAIN_STEPS, signal_and_noise
from train_emoji.pictures import Scene
from train_emoji.precision import autocast
from train_emoji.recipe import Recipe
from train_emoji.things import Thing
from train_emoji.tokenizer import PromptTokenizer
from train_emoji.training import Batch, Stage, generator_of

_OFF_CENTER_SHARE = {"medium": 0.3, "small": 0.4}
"""Of scenes whose thing is off the middle, so many are kept: pictures come out better centered."""


class DiffusionTraining(Stage):
    """The squared error of v over timesteps that are spread evenly over each batch."""

    name = "diffusion"
    warmup, hold, floor, averaging = 0.036, 0.3, 0.02, 0.996

    def __init__(
        self,
        recipe: Recipe,
        things: tuple[Thing, ...],
        latents: Latents,
        tokenizer: PromptTokenizer,
        text_encoder: CLIPTextModel,
    ) -> None:
        self._recipe, self._things, self._latents, self._tokenizer = recipe, things, latents, tokenizer
        self.steps, self.rate = recipe.unet_steps, recipe.unet_rate
        weights = np.array([_weigh(scene) for scene in latents.scenes])
        self._shares = weights / weights.sum()
        torch.manual_seed(recipe.seed)
        unet = build_unet(recipe).to(memory_format=torch.channels_last)  # a sixth faster on a CPU
        self.modules = nn.ModuleDict({"unet": unet, "text_encoder": text_encoder})
        inner = {name: value for name, value in unet.named_parameters() if not name.startswith(("conv_in", "conv_out"))}
        matrices = {name: value for name, value in inner.items() if value.ndim >= 2}
        others = [value for name, value in unet.named_parameters() if name not in matrices]
        groups = [{"params": others}, {"params": [*text_encoder.parameters()], "factor": 0.3}]
        self.optimizers = [
            torch.optim.AdamW(groups, betas=(0.9, 0.99), weight_decay=1e-2, fused=True),
            Muon(matrices.values(), lr=recipe.unet_rate),
        ]

    def __getitem__(self, step: int) -> dict[str, np.ndarray]:
        """Noisy latents, their timesteps, token ids and the v to be found."""
        rng = generator_of(self._recipe.seed, self.name, step)
        count = self._recipe.unet_batch
        rows = rng.choice(len(self._shares), count, p=self._shares)
        captions = [write_caption(self._things, self._latents.scenes[row], rng) for row in rows]
        shape = (count, *self._latents.mean.shape[1:])
        sampled = self._latents.mean[rows] + self._latents.deviation[rows] * rng.standard_normal(shape, np.float32)
        clean = sampled * np.float32(self._latents.facts.scaling_factor)
        noise = rng.standard_normal(shape, np.float32)
        timesteps = rng.permutation(((np.arange(count) + rng.random(count)) / count * TRAIN_STEPS).astype(np.int64))
        signal, spread = (share[timesteps].astype(np.float32)[:, None, None, None] for share in signal_and_noise())
        return {
            "noisy": signal * clean + spread * noise,
            "v": signal * noise - spread * clean,
            "timesteps": timesteps,
            "ids": self._tokenizer(captions),
        }

    def loss(self, batch: Batch) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        """The mean squared error of v."""
        with autocast(self.modules):
            hidden = self.modules["text_encoder"](input_ids=batch["ids"]).last_hidden_state
            found = self.modules["unet"](batch["noisy"], batch["timesteps"], hidden).sample
        loss = (found.float() - batch["v"]).square().mean()
        return loss, {"loss": loss}


def _weigh(scene: Scene) -> float:
    return 1.0 if scene.dx == scene.dy == 0 else _OFF_CENTER_SHARE[scene.size]
