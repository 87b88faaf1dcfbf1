from pathlib import Path

import pytest

from train_emoji.recipe import Recipe
from train_emoji.things import Thing
from train_emoji.tokenizer import PromptTokenizer, count_words, learn_merges, write_tokenizer

EMBEDDED = Path(__file__).resolve().parents[3] / "models/emoji-sd/tokenizer"


@pytest.fixture(scope="module")
def directory(things: tuple[Thing, ...], tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("tokenizer")
    write_tokenizer(target, learn_merges(count_words(things, Recipe.tokenizer_captions)))
    return target


@pytest.mark.parametrize("file", [path.name for path in EMBEDDED.iterdir()])
def test_makes_the_embedded_tokenizer_again(directory: Path, file: str) -> None:
    assert (directory / file).read_bytes() == (EMBEDDED / file).read_bytes()


def test_every_word_of_a_caption_is_one_token(directory: Path) -> None:
    tokenizer = PromptTokenizer(directory)
    (ids,) = tokenizer(["a Rhinoceros on a grey gradient background"])
    end = tokenizer.size - 1
    assert ids[0] == end - 1
    assert (ids[1:8] < end - 1).all()
    assert (ids[8:] == end).all()
