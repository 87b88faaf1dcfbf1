"""Previews: fitted to a decoder, and written beside what darkroom.json has."""

import json
import shutil
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from export_model.previews import add_preview, decode_colors, draw_latents, fit_preview

MODEL = Path(__file__).resolve().parents[3] / "models/emoji-sd"
GRAPH = MODEL / "vae_decoder/model_int8.onnx"
CONFIG = json.loads((MODEL / "vae_decoder/config.json").read_text())


def test_reproduces_downsampled_images_that_it_was_not_fitted_to() -> None:
    preview, explained = fit_preview(GRAPH, CONFIG)
    assert explained > 0.8
    session = onnxruntime.InferenceSession(GRAPH)
    generator = np.random.default_rng(99)
    latents = np.stack([draw_latents(generator, CONFIG["latent_channels"]) for _ in range(16)])
    expected = np.stack([decode_colors(session, each, CONFIG) for each in latents])
    shown = np.einsum("nchw,cr->nrhw", latents, preview["matrix"]) + np.array(preview["bias"])[:, None, None]
    difference = np.clip(shown, 0, 1) - expected
    assert np.abs(difference).mean() < 0.1
    assert difference.var() < 0.25 * (expected - expected.mean(axis=(0, 2, 3), keepdims=True)).var()


def test_comes_near_the_numbers_that_real_images_gave() -> None:
    recorded = json.loads((MODEL / "darkroom.json").read_text())["preview"]
    preview, _ = fit_preview(GRAPH, CONFIG)
    assert np.allclose(preview["matrix"], recorded["matrix"], atol=0.05)
    assert np.allclose(preview["bias"], recorded["bias"], atol=0.05)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    shutil.copytree(MODEL / "vae_decoder", tmp_path / "vae_decoder")
    return tmp_path


def test_is_written_beside_other_settings(model: Path) -> None:
    (model / "darkroom.json").write_text('{"ownedBy": "me"}')
    assert add_preview(model) > 0.8
    written = json.loads((model / "darkroom.json").read_text())
    assert written["ownedBy"] == "me"
    assert np.shape(written["preview"]["matrix"]) == (4, 3)
    assert np.shape(written["preview"]["bias"]) == (3,)


def test_leaves_a_preview_that_is_there(model: Path) -> None:
    content = '{"preview": {"matrix": [[0, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0]], "bias": [1, 0, 0]}}'
    (model / "darkroom.json").write_text(content)
    assert add_preview(model) is None
    assert (model / "darkroom.json").read_text() == content


def test_names_what_is_missing(model: Path) -> None:
    (model / "vae_decoder/config.json").unlink()
    with pytest.raises(SystemExit, match=r"vae_decoder/ lacks config\.json"):
        add_preview(model)
