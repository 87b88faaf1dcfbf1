"""Shared by the tests: a tiny model, as `train.py --preset tiny` makes it, without training."""

from pathlib import Path

import pytest
import torch
from train_emoji.things import all_things

from train_reader.export import export_model
from train_reader.model import Reader
from train_reader.recipe import PRESETS
from train_reader.tokenizer import train_tokenizer


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def reader() -> Reader:
    torch.manual_seed(0)
    return Reader(PRESETS["tiny"].vision, PRESETS["tiny"].text).eval()


@pytest.fixture(scope="session")
def directory(reader: Reader, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "tiny-reader"
    export_model(path, reader, train_tokenizer(1024, all_things(), 0), PRESETS["tiny"])
    return path
