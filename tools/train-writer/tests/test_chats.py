import random

import pytest

from train_writer.chats import FOLLOW_UPS, make_chat
from train_writer.knowledge import color_words, cues, suiting_colors
from train_writer.picking import Split
from train_writer.things import COLORS, all_nouns, parse_prompt
from train_writer.wishes import FAMILIES, make_wish

SPLITS = [Split(), Split(unseen_frames=True)]


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("family", FAMILIES)
def test_every_wish_has_an_answer_that_fits(split, family):
    rng = random.Random(family)
    for _ in range(40):
        chat = make_chat(rng, split, family, [])
        (turn,) = chat.turns
        answer = parse_prompt(str(turn.answer))
        assert answer == turn.answer
        assert turn.answer.thing in turn.wish.things
        assert "{" not in turn.text
        assert turn.wish.color in (None, turn.answer.color)


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("kind", FOLLOW_UPS)
def test_every_turn_changes_what_it_says_and_keeps_the_rest(split, kind):
    rng = random.Random(kind)
    for _ in range(100):
        first, then = make_chat(rng, split, None, [kind]).turns
        before, after = first.answer, then.answer
        assert parse_prompt(str(after)) == after
        if kind == "color":
            assert (before.thing, before.size, before.style) == (after.thing, after.size, after.style)
        if kind in ("bigger", "smaller"):
            assert (before.thing, before.color) == (after.thing, after.color)
            assert after.size in (("big", "large") if kind == "bigger" else ("small", "little"))
        if kind == "other":
            assert before.thing != after.thing


def test_negation_leaves_out_what_is_not_wanted():
    rng = random.Random(1)
    of_text = {cue.text: cue.things for cue in cues() if cue.kind == "category"}
    for _ in range(200):
        wish = make_wish(rng, family="not only")
        assert not set(wish.things) & set(of_text[wish.keys[-1]])


def test_every_thing_is_known_by_many_words_and_has_a_background():
    known = [sum(thing in cue.things for cue in cues()) for thing in range(len(all_nouns()))]
    assert min(known) >= 15
    assert all(set(colors) <= set(COLORS) for colors in suiting_colors())
    assert set(color_words().values()) == set(COLORS)
