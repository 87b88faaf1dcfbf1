"""Shared by the tests: the tiny recipe's things and a Stage small enough to be run in no time."""

import pytest
import torch

from train_emoji.pictures import Sprites, render_sprites
from train_emoji.things import Thing, all_things


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def things() -> tuple[Thing, ...]:
    return all_things()


@pytest.fixture(scope="session")
def sprites(things: tuple[Thing, ...]) -> Sprites:
    return render_sprites(things)
