"""The upscaler: what it is before it is trained, its data, and its graph."""

import json
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from train_emoji.pictures import SIDE, Sprites, paint, render_sprites
from train_emoji.things import Thing, is_held_out
from train_emoji.upscaler import (
    SCALE,
    Upscaler,
    UpscalerTraining,
    export_upscaler,
    held_out_scenes,
    judge_upscaler,
    training_scenes,
)


def test_untrained_scales_as_pillow_does() -> None:
    small = np.random.default_rng(0).integers(100, 150, (20, 30, 3), np.uint8)  # none that Pillow has to clip
    larger = Image.fromarray(small).resize((60, 40), Image.Resampling.BICUBIC)
    values = Upscaler()(torch.from_numpy(small).permute(2, 0, 1)[None] / 255)[0].detach().permute(1, 2, 0).numpy()
    inner = (slice(4, -4), slice(4, -4))  # at the edge Pillow weighs anew
    assert np.abs(values.clip(0, 1) * 255 - np.asarray(larger))[inner].max() <= 1.5


def test_is_not_trained_on_what_it_is_judged_by(things: tuple[Thing, ...]) -> None:
    assert not any(is_held_out(scene.thing, scene.color) for scene in training_scenes(500, things, seed=0))
    held_out = held_out_scenes(things, seed=0)
    assert len({scene.thing for scene in held_out}) == len(things)
    assert all(is_held_out(scene.thing, scene.color) for scene in held_out)


def test_scenes_are_the_same_in_both_sizes(things: tuple[Thing, ...], sprites: Sprites) -> None:
    larger = render_sprites(things[:3], SCALE)
    for scene in training_scenes(3, things[:3], seed=0):
        large = paint(scene, larger, SCALE)
        assert large.shape == (SIDE * SCALE, SIDE * SCALE, 3)
        halved = large.reshape(SIDE, SCALE, SIDE, SCALE, 3).mean((1, 3))
        assert np.abs(halved - paint(scene, sprites)).mean() < 0.01


def test_crops_of_a_pair_show_the_same() -> None:
    small, large = (_ramps(64, scale) for scale in (1, SCALE))
    stage = UpscalerTraining((small, large), steps=8, batch=3)
    for step in range(8):
        batch = {name: torch.from_numpy(value) for name, value in stage[step].items()}
        # Untrained, it scales a ramp to a ramp; turned another way it would be off by a tenth.
        assert stage.loss(batch)[1]["L1"] < 0.01


def _ramps(side: int, scale: int) -> np.ndarray:
    """Two pictures that rise across and down."""
    at = (np.arange(side * scale) + 0.5) / scale
    ramp = 2 * at[None] + at[:, None] + 10
    return np.stack([ramp, ramp + 20])[..., None].repeat(3, -1).round().astype(np.uint8)


def test_graph_takes_any_size(tmp_path: Path) -> None:
    export_upscaler(Upscaler(width=4, layers=1), tmp_path)
    assert json.loads((tmp_path / "config.json").read_text())["upscale"] == SCALE
    small = np.full((1, 24, 24, 3), 128, np.uint8)
    figures = judge_upscaler(tmp_path / "model.onnx", (small, small.repeat(SCALE, 1).repeat(SCALE, 2)), threads=1)
    assert figures["upscaler"] > 50
