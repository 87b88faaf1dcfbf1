import re
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from checkpoints import PIPELINES

HERE = Path(__file__).resolve().parent


def export(*words: object) -> subprocess.CompletedProcess:
    command = [sys.executable, HERE.parent / "export.py", *map(str, words)]
    return subprocess.run(command, check=False, capture_output=True, text=True)


@pytest.mark.parametrize("name", PIPELINES)
def test_darkroom_draws_the_same_with_each_dtype(tmp_path: Path, name: str) -> None:
    PIPELINES[name]().save_pretrained(tmp_path / "checkpoint")
    done = export(tmp_path / "checkpoint", tmp_path / "tiny", "--prompts", 8)
    assert done.returncode == 0, done.stdout + done.stderr
    # Only a whole model has its name.
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint", "tiny"]
    half = "fp16,vae_decoder=fp32" if name == "stable_diffusion_xl" else "fp16"
    ratios = re.findall(r"^(\S+) .* ([\d.]+) dB +([\d.]+) dB .*same bytes$", done.stdout, re.MULTILINE)
    assert {dtype for dtype, *_ in ratios} == {"int8", half}
    for dtype, _, lowest in ratios:
        assert float(lowest) > (40 if dtype == "int8" else 50)
    assert (tmp_path / "tiny/vae_encoder").exists() == (name != "cogview4")
    denoiser = "transformer" if (tmp_path / "tiny/transformer").exists() else "unet"
    for file in ("model.onnx", "model_fp16.onnx", "model_int8.onnx"):
        graph = onnx.load(tmp_path / "tiny" / denoiser / file).graph
        timestep = next(value for value in graph.input if value.name == "timestep").type.tensor_type
        assert timestep.elem_type == onnx.TensorProto.FLOAT
        assert [side.dim_param for side in timestep.shape.dim] == ["batch_size"]


def test_refuses_before_anything_is_written(tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    checkpoint.mkdir()
    (checkpoint / "model_index.json").write_text('{"_class_name": "FluxPipeline"}')
    done = export(checkpoint, tmp_path / "tiny")
    assert done.returncode == 1
    assert "_class_name is 'FluxPipeline'" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint"]


def test_refuses_a_name_that_is_taken(tmp_path: Path) -> None:
    PIPELINES["latent_consistency"]().save_pretrained(tmp_path / "checkpoint")
    (tmp_path / "tiny").mkdir()
    done = export(tmp_path / "checkpoint", tmp_path / "tiny")
    assert done.returncode == 1
    assert f"{tmp_path / 'tiny'} is there already" in done.stderr


def test_names_weights_that_are_missing(tmp_path: Path) -> None:
    PIPELINES["latent_consistency"]().save_pretrained(tmp_path / "checkpoint")
    next((tmp_path / "checkpoint/unet").glob("*.safetensors")).unlink()
    done = export(tmp_path / "checkpoint", tmp_path / "tiny")
    assert done.returncode == 1
    assert "diffusion_pytorch_model" in done.stderr
    assert not (tmp_path / "tiny").exists()
