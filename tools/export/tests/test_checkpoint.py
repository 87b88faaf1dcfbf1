import json
from pathlib import Path

import pytest

from export_model.checkpoint import read_checkpoint

INDEX = {
    "_class_name": "StableDiffusionPipeline",
    "requires_safety_checker": True,
    "safety_checker": ["stable_diffusion", "StableDiffusionSafetyChecker"],
    "feature_extractor": [None, None],
    "scheduler": ["diffusers", "DDIMScheduler"],
    "text_encoder": ["transformers", "CLIPTextModel"],
    "tokenizer": ["transformers", "CLIPTokenizer"],
    "unet": ["diffusers", "UNet2DConditionModel"],
    "vae": ["diffusers", "AutoencoderKL"],
}


def write(directory: Path, **changes: object) -> Path:
    index = INDEX | changes
    (directory / "model_index.json").write_text(json.dumps(index))
    for name, value in index.items():
        if isinstance(value, list):
            (directory / name).mkdir(exist_ok=True)
    return directory


def test_says_what_is_left_out(tmp_path: Path) -> None:
    checkpoint = read_checkpoint(write(tmp_path))
    assert checkpoint.components == ("scheduler", "text_encoder", "tokenizer", "unet", "vae")
    assert checkpoint.graphs == ("text_encoder", "unet", "vae")
    assert checkpoint.unused == ("safety_checker",)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"_class_name": "FluxPipeline"}, "_class_name is 'FluxPipeline', expected one of StableDiffusionPipeline, "),
        ({"vae": ["diffusers", "AutoencoderTiny"]}, "vae is AutoencoderTiny, expected AutoencoderKL"),
        ({"unet": [None, None]}, "unet is missing"),
        ({"scheduler": [None, None]}, "scheduler is missing"),
        ({"controlnet": ["diffusers", "ControlNetModel"]}, "controlnet (ControlNetModel) cannot be exported"),
        (
            {"tokenizer": ["transformers", "T5Tokenizer"], "unet": ["diffusers", "UNet3D"]},
            "tokenizer is T5Tokenizer, expected CLIPTokenizer or CLIPTokenizerFast; "
            "unet is UNet3D, expected UNet2DConditionModel",
        ),
    ],
)
def test_names_all_that_it_cannot_do(tmp_path: Path, changes: dict, problem: str) -> None:
    with pytest.raises(SystemExit) as refused:
        read_checkpoint(write(tmp_path, **changes))
    assert problem in str(refused.value)


def test_names_a_folder_that_is_missing(tmp_path: Path) -> None:
    (write(tmp_path) / "vae").rmdir()
    with pytest.raises(SystemExit, match="vae/ is missing"):
        read_checkpoint(tmp_path)


@pytest.mark.parametrize("text", [None, "{", "[]"])
def test_refuses_what_is_no_checkpoint(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "model_index.json").write_text(text)
    with pytest.raises(SystemExit, match=r"model_index\.json"):
        read_checkpoint(tmp_path)
