"""The files of a checkpoint that are taken as they are."""

import shutil
from pathlib import Path

from export_model.checkpoint import Checkpoint

_TOP = ("model_index.json", "darkroom.json", "README*", "LICEN[CS]E*", "NOTICE*")


VAE_PARTS = ("vae_decoder", "vae_encoder")
"""The graphs of a VAE, each with a folder of its own."""


def _parts_of(checkpoint: Checkpoint, name: str) -> tuple[str, ...]:
    if name != "vae":
        return (name,)
    # No pipeline of CogView4 starts from an image.
    return VAE_PARTS[:1] if checkpoint.pipeline == "CogView4Pipeline" else VAE_PARTS


def copy_files(checkpoint: Checkpoint, target: Path) -> None:
    """model_index.json, tokenizers, the scheduler, the config.json of each graph, and what is said of the model."""
    source = checkpoint.directory
    for pattern in _TOP:
        for file in source.glob(pattern):
            shutil.copy(file, target / file.name)
    for name in checkpoint.components:
        if name in checkpoint.graphs:
            for part in _parts_of(checkpoint, name):
                (target / part).mkdir()
                shutil.copy(source / name / "config.json", target / part / "config.json")
        else:
            shutil.copytree(source / name, target / name)
