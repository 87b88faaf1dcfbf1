"""The files of a checkpoint that are taken as they are."""

import shutil
from pathlib import Path

from export_model.checkpoint import Checkpoint

_TOP = ("model_index.json", "darkroom.json", "README*", "LICEN[CS]E*", "NOTICE*")


def copy_files(checkpoint: Checkpoint, target: Path) -> None:
    """model_index.json, tokenizers, the scheduler, the config.json of each graph, and what is said of the model."""
    source = checkpoint.directory
    for pattern in _TOP:
        for file in source.glob(pattern):
            shutil.copy(file, target / file.name)
    for name in checkpoint.components:
        if name in checkpoint.graphs:
            part = target / ("vae_decoder" if name == "vae" else name)
            part.mkdir()
            shutil.copy(source / name / "config.json", part / "config.json")
        else:
            shutil.copytree(source / name, target / name)
