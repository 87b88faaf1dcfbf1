"""Shared by the tests: a small tokenizer and a small network."""

import pytest
import torch
from tokenizers import Tokenizer

from train_writer.model import Network, Shape
from train_writer.tokenizer import train_tokenizer


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    return train_tokenizer(1024, 200, 0)


@pytest.fixture
def network() -> Network:
    torch.manual_seed(0)
    return Network(Shape(vocabulary=1024, width=64, layers=2, heads=2, hidden=64)).eval()
