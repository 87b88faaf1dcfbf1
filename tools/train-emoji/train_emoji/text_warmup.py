"""Warms the text encoder up, so that the UNet's training begins with vectors that tell captions apart.

From the vector of the end token and from that of a random later position (the UNet attends to all 77) linear heads read
off what the caption says: the thing, the color, the size, whether there is a gradient, and a thumbnail of the thing.
"""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from train_emoji.captions import write_caption
from train_emoji.models import build_text_encoder
from train_emoji.pictures import SIZES, Scene, Sprites
from train_emoji.precision import autocast
from train_emoji.recipe import Recipe
from train_emoji.things import COLOR_NAMES, COLORS, Thing, is_held_out
from train_emoji.tokenizer import LENGTH, PromptTokenizer
from train_emoji.training import Batch, Stage, generator_of

_THUMBNAIL = 8
_SIZE_WORDS = (("big ", "large ", "huge "), ("small ", "little ", "tiny "))
_SIZE_SHARES = {"medium": 0.4, "big": 0.3, "small": 0.3}


class TextWarmup(Stage):
    """The text encoder and five heads that are thrown away."""

    name = "text-warmup"
    warmup, hold, floor, averaging = 0.3, 0.3, 0.05, 0.0

    def __init__(self, recipe: Recipe, things: tuple[Thing, ...], sprites: Sprites, tokenizer: PromptTokenizer) -> None:
        self._recipe, self._things, self._tokenizer = recipe, things, tokenizer
        self.steps, self.rate = recipe.text_steps, recipe.text_rate
        self._thumbnails = _make_thumbnails(sprites)
        torch.manual_seed(recipe.seed)
        sizes = {
            "thing": len(things),
            "color": len(COLORS) + 1,
            "size": len(_SIZE_WORDS) + 1,
            "gradient": 2,
            "thumbnail": self._thumbnails.shape[1],
        }
        heads = {name: nn.Linear(recipe.text_width, size) for name, size in sizes.items()}
        encoder = build_text_encoder(recipe, tokenizer.size)
        self.modules = nn.ModuleDict({"text_encoder": encoder, **heads})
        self.optimizers = [torch.optim.AdamW(self.modules.parameters(), weight_decay=1e-3, fused=True)]

    def __getitem__(self, step: int) -> dict[str, np.ndarray]:
        """Ids, a position after the end of each caption, and what each caption says."""
        rng = generator_of(self._recipe.seed, self.name, step)
        scenes = [self._draw_scene(rng) for _ in range(self._recipe.text_batch)]
        captions = [write_caption(self._things, scene, rng, empty=0) for scene in scenes]
        ids = self._tokenizer(captions)
        ends = ids.argmax(1)  # the end token has the highest id; the first of them
        return {
            "ids": ids,
            "positions": np.stack([ends, rng.integers(30, LENGTH, len(ids))]),
            "thing": np.array([scene.thing for scene in scenes]),
            "color": np.array([_said_color(*pair) for pair in zip(captions, scenes, strict=True)]),
            "size": np.array([_said_size(caption) for caption in captions]),
            "gradient": np.array([int("gradient" in caption) for caption in captions]),
            "thumbnail": self._thumbnails[[scene.thing for scene in scenes]],
        }

    def loss(self, batch: Batch) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        """Cross entropies and the thumbnail's squared error, of both positions."""
        with autocast(self.modules):
            hidden = self.modules["text_encoder"](input_ids=batch["ids"]).last_hidden_state
        rows = torch.arange(len(hidden), device=hidden.device)
        loss = torch.zeros((), device=hidden.device)
        right = []
        for positions in batch["positions"]:
            vector = hidden.float()[rows, positions]
            for name, weight in {"thing": 1.0, "color": 1.0, "size": 0.3, "gradient": 0.3}.items():
                logits = self.modules[name](vector)
                loss = loss + weight * F.cross_entropy(logits, batch[name])
                if name == "thing":
                    right.append((logits.argmax(1) == batch[name]).float().mean())
            loss = loss + F.mse_loss(self.modules["thumbnail"](vector), batch["thumbnail"])
        return loss, {"loss": loss, "thing right": torch.stack(right).mean()}

    def _draw_scene(self, rng: np.random.Generator) -> Scene:
        thing = int(rng.integers(len(self._things)))
        color = int(rng.choice([color for color in range(len(COLORS)) if not is_held_out(thing, color)]))
        size = str(rng.choice([*_SIZE_SHARES], p=[*_SIZE_SHARES.values()]))
        return Scene(thing, color, bool(rng.random() < 0.3), size)


def _make_thumbnails(sprites: Sprites) -> np.ndarray:
    """Float32 [things, 8·8·4], each number standardized over the things."""
    block = SIZES["medium"] // _THUMBNAIL
    small = [
        sprite["medium"].reshape(_THUMBNAIL, block, _THUMBNAIL, block, 4).mean((1, 3)).ravel() for sprite in sprites
    ]
    stacked = np.stack(small)
    return ((stacked - stacked.mean(0)) / (stacked.std(0) + 0.05)).astype(np.float32)


def _said_color(caption: str, scene: Scene) -> int:
    last_word = caption.partition(",")[0].rpartition(" ")[2]
    says = "background" in caption or last_word in (*COLOR_NAMES, "grey", "gradient")
    return scene.color if says else len(COLORS)


def _said_size(caption: str) -> int:
    said = [number for number, words in enumerate(_SIZE_WORDS) if any(word in caption for word in words)]
    return said[0] if said else len(_SIZE_WORDS)
