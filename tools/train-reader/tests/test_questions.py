"""Tests questions, their answers, and what training leaves out."""

import random
import re

import numpy as np
import pytest
import torch
from train_emoji.pictures import Scene, render_sprites
from train_emoji.things import COLOR_NAMES, all_things, is_held_out
from train_writer.things import parse_prompt

from train_reader.batches import Batches
from train_reader.images import draw_image
from train_reader.questions import KINDS, WORDINGS, ask, kind_of
from train_reader.tokenizer import END, IMAGE, train_tokenizer

THINGS = all_things()
FOX = next(at for at, thing in enumerate(THINGS) if thing.nouns[0] == "fox")


def test_descriptions_have_the_form_of_prompts() -> None:
    scene = Scene(FOX, COLOR_NAMES.index("orange"), gradient=True, size="big")
    answer = ask(scene, THINGS, random.Random(0), family="describe").answer
    assert answer == "a big fox on an orange gradient background"
    assert parse_prompt(answer) is not None


@pytest.mark.parametrize(
    ("noun", "kind"),
    [("fox", "animal"), ("rose", "plant"), ("pizza", "food"), ("mug of beer", "drink"), ("teapot", "object"), ("rocket", "vehicle")],
)
def test_things_have_kinds(noun: str, kind: str) -> None:
    assert kind_of(next(at for at, thing in enumerate(THINGS) if thing.nouns[0] == noun), THINGS) == kind


def test_yes_and_no_are_true() -> None:
    rng = random.Random(1)
    for thing in range(len(THINGS)):
        scene = Scene(thing, thing % len(COLOR_NAMES), gradient=False, size="medium")
        turn = ask(scene, THINGS, rng, family="is color")
        assert (COLOR_NAMES[scene.color] in turn.question) == (turn.answer == "yes")
        turn = ask(scene, THINGS, rng, family="is kind")
        asked = next(kind for kind in KINDS if kind in turn.question)
        assert (asked == kind_of(thing, THINGS)) == (turn.answer == "yes")


def test_training_has_no_held_out_wording_or_pair() -> None:
    rng = random.Random(2)
    scene = Scene(FOX, 0, gradient=False, size="medium")
    for family, (trained, kept) in WORDINGS.items():
        assert not {*trained} & {*kept}
        asked = {ask(scene, THINGS, rng, family=family).question for _ in range(300)}
        patterns = [re.sub(r"\\\{.*?\\\}", "(?:an? .+|[a-z]+)", re.escape(wording)) for wording in kept]
        assert not [question for question in asked if any(re.fullmatch(pattern, question) for pattern in patterns)]
    sprites = render_sprites(THINGS[:3])
    draws = np.random.default_rng(3)
    for _ in range(60):
        drawn, _pixels = draw_image(draws, int(draws.integers(3)), sprites)
        assert not is_held_out(drawn.thing, drawn.color)


def test_questions_about_an_image_do_not_see_each_other() -> None:
    tokenizer = train_tokenizer(1024, THINGS, 0)
    batch = Batches(tokenizer, THINGS, render_sprites(THINGS), seed=4, rows=8, patches=36).batch_of(0)
    assert torch.equal(batch.ids.flatten()[batch.wanted + 1], batch.targets)
    assert (batch.ids == IMAGE).sum(1).tolist() == [36] * 8
    assert (batch.targets == END).sum().item() == 8 * 5
    for row in range(8):
        ends = [place for place in batch.wanted.tolist() if place // batch.ids.shape[1] == row]
        last = ends[-1] % batch.ids.shape[1]
        seen = batch.mask[row, last].sum().item()
        # A conversation sees all that precedes it; else a question sees the image and itself.
        assert seen == last + 1 or batch.positions[row, last].item() == seen - 1
