from pathlib import Path

import numpy as np
import pytest

from train_emoji.evaluation import OnnxModel, Sampling, measure_vae, psnr, recognize_held_out, spread
from train_emoji.pictures import Sprites
from train_emoji.things import Thing

EMBEDDED = Path(__file__).resolve().parents[3] / "models/emoji-sd"


def test_the_embedded_model_has_the_figures_of_its_readme(things: tuple[Thing, ...], sprites: Sprites) -> None:
    model = OnnxModel(EMBEDDED, "int8", threads=1)
    found = recognize_held_out(model, things, sprites, Sampling(), 32)
    # 100 % and 99.5–100 %: one miss among 32 may be chance, three are not.
    assert found["pairs"] == 32
    assert found["background"] == 1
    assert found["thing"] >= 30 / 32


def test_finds_what_guidance_is_for(things: tuple[Thing, ...], sprites: Sprites) -> None:
    model = OnnxModel(EMBEDDED, "int8", threads=1)
    found = recognize_held_out(model, things, sprites, Sampling(steps=4, guidance=0), 16)
    assert found["thing"] < 0.5
    assert len(found["misses"]) >= 8


def test_the_embedded_vae_loses_what_its_recipe_says(sprites: Sprites) -> None:
    assert measure_vae(EMBEDDED, "int8", sprites, threads=1) == pytest.approx(27.61, abs=0.05)


def test_psnr_is_of_a_range_of_one() -> None:
    zero = np.zeros((2, 4, 4, 3))
    assert psnr(zero, zero + 0.1) == pytest.approx([20, 20])
    assert np.isinf(psnr(zero, zero)).all()


def test_spreads_over_all_rows() -> None:
    assert spread([*range(10)], 4) == [0, 2, 5, 7]
    assert spread([1, 2], 4) == [1, 2]
