"""Whole runs of the tiny recipe, through the command line and piece by piece."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from train_emoji.recipe import PRESETS, Recipe, change_recipe, keep_recipe
from train_emoji.stages import MODEL, STAGES, Run
from train_emoji.training import Conditions
from travel import pack, unpack

HERE = Path(__file__).resolve().parent
TRAINED = ("text-warmup/text_encoder", "vae/vae", "diffusion/unet", "diffusion/text_encoder", "decoder/vae")


def start(out: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(HERE.parent / "train.py"), "--preset", "tiny", "--threads", "1", "--out", str(out)]
    return subprocess.run([*command, *options], capture_output=True, text=True, check=False)


def run_of(out: Path, conditions: Conditions) -> Run:
    return Run(out, PRESETS["tiny"], conditions, threads=1)


def names(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


def weights(out: Path) -> dict[str, bytes]:
    files = {name: sorted((out / name).glob("*.safetensors")) for name in TRAINED}
    assert all(len(paths) == 1 for paths in files.values())
    return {name: paths[0].read_bytes() for name, paths in files.items()}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run without any interruption."""
    out = tmp_path_factory.mktemp("whole")
    ended = start(out)
    assert ended.returncode == 0, ended.stderr
    return out


def test_makes_a_model_with_its_figures(whole: Path) -> None:
    model = whole / MODEL
    metrics = json.loads((model / "metrics.json").read_text())
    assert set(metrics["variants"]) == {"fp32", "int8"}
    for figures in metrics["variants"].values():
        assert figures["pairs"] == PRESETS["tiny"].things
        assert figures["vae_psnr_db"] > 5
    # However bad the pictures are, those of the INT8 weights are the same ones.
    assert metrics["int8_psnr_db"]["least"] > 35
    embedded = HERE.parents[2] / "models/emoji-sd"
    only_there = {"README.md", "pictures"}
    assert {path.name for path in embedded.iterdir()} - only_there == {path.name for path in model.iterdir()} - {
        "metrics.json"
    }
    for part in ("text_encoder", "unet", "vae_decoder", "vae_encoder"):
        assert {path.name for path in (embedded / part).iterdir()} <= {path.name for path in (model / part).iterdir()}


@pytest.mark.parametrize("variant", ["fp32", "int8"])
def test_darkroom_makes_a_picture_with_it(whole: Path, variant: str) -> None:
    assert (HERE.parents[2] / "libs/diffusion/dist/index.js").exists(), "build Darkroom first: npm run build"
    command = ["node", str(HERE / "make-picture.mjs"), str(whole / MODEL), variant]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    made = json.loads(ended.stdout)
    assert made["bytes"] == 128 * 128 * 3
    assert made["values"] > 20
    assert made["preview"] == {"width": 16, "height": 16}


def test_ends_in_the_same_weights_however_often_it_was_interrupted(whole: Path, tmp_path: Path) -> None:
    conditions = Conditions(stop_after_steps=5)
    calls = 1
    while not run_of(tmp_path, conditions).run_stages("decoder"):
        calls += 1
    assert calls > 8
    assert weights(tmp_path) == weights(whole)


def test_ends_in_the_same_weights_with_other_processes_preparing_data(whole: Path, tmp_path: Path) -> None:
    assert run_of(tmp_path, Conditions(workers=2)).run_stages("vae")
    for name in TRAINED[:2]:
        file = next((whole / name).glob("*.safetensors"))
        assert (tmp_path / name / file.name).read_bytes() == file.read_bytes()


def test_stops_at_a_checkpoint_when_time_is_up(tmp_path: Path) -> None:
    ended = start(tmp_path, "--minutes", "0")
    assert ended.returncode == 75, ended.stderr
    assert "the same command goes on from here" in ended.stdout
    assert [path.name for path in tmp_path.glob("*.checkpoint")] == ["text-warmup.checkpoint"]


def test_does_not_look_at_a_checkpoint_that_was_not_finished(tmp_path: Path) -> None:
    assert not run_of(tmp_path, Conditions(stop_after_steps=5)).run_stages("text-warmup")
    (tmp_path / "text-warmup.checkpoint.partial").write_bytes(b"half of it")
    assert run_of(tmp_path, Conditions()).run_stages("text-warmup")


def test_makes_nothing_twice(whole: Path) -> None:
    ended = start(whole)
    assert ended.stdout.splitlines() == [f"{name}: already made" for name in STAGES]


def test_refuses_to_go_on_with_another_recipe(tmp_path: Path) -> None:
    keep_recipe(tmp_path, Recipe())
    keep_recipe(tmp_path, Recipe())
    with pytest.raises(SystemExit, match=r"unet_steps 4200 \(asked for: 9\)"):
        keep_recipe(tmp_path, change_recipe(Recipe(), ["unet_steps=9"]))


def test_changes_recipes() -> None:
    changed = change_recipe(Recipe(), ["unet_channels=64,128,256", "unet_rate=1e-3"])
    assert (changed.unet_channels, changed.unet_rate) == ((64, 128, 256), 1e-3)
    with pytest.raises(SystemExit, match="there is no 'width'"):
        change_recipe(Recipe(), ["width=3"])
    with pytest.raises(SystemExit, match=r"unet_batch=many.*expected something like 64"):
        change_recipe(Recipe(), ["unet_batch=many"])


@pytest.mark.parametrize("half", [False, True])
def test_travels_and_goes_on(tmp_path: Path, half: bool) -> None:
    there, here = tmp_path / "there", tmp_path / "here"
    there.mkdir()
    run = run_of(there, Conditions())
    assert run.run_stages("latents")
    assert not run_of(there, Conditions(stop_after_steps=5)).run_stages("diffusion")
    pack(there, tmp_path / "parts", half=half)
    unpack(tmp_path / "parts", here)
    assert not (here / "latents/latents.pt").exists()
    for path in there.rglob("*.safetensors"):
        assert ((here / path.relative_to(there)).read_bytes() == path.read_bytes()) != half
    assert not run_of(here, Conditions(stop_after_steps=5)).run_stages("diffusion")
    assert run_of(here, Conditions()).run_stages("decoder")
    assert set(weights(here)) == set(TRAINED)
