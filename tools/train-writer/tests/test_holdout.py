"""That training sees nothing of what models are judged on."""

import random
import re

from train_writer.chats import make_chat
from train_writer.evaluation import hold_outs
from train_writer.knowledge import cues, read_free_wishes
from train_writer.picking import Split
from train_writer.wishes import FAMILIES, make_wish
from train_writer.wordings import all_frames, frames

CHATS = 4000


def trained():
    rng = random.Random(7)
    return [make_chat(rng) for _ in range(CHATS)]


def words(text):
    return re.findall(r"[a-z'-]+", text.lower())


def test_a_fifth_of_each_list_is_unseen():
    for name, every in all_frames().items():
        seen, unseen = frames(name, unseen=False), frames(name, unseen=True)
        assert seen
        assert unseen
        if name not in ("hello", "anything", "system", "or"):
            assert not set(seen) & set(unseen)
            assert set(seen) | set(unseen) | {frame for frame in every if re.fullmatch(r"\{\w\}\W*", frame)} == set(every)


def test_training_has_none_of_the_hold_outs_messages():
    said = {" ".join(words(turn.text)) for chat in trained() for turn in chat.turns}
    cases = hold_outs(100)
    for name in ("unseen wordings", "unseen pairs", "free wishes"):
        judged = {" ".join(words(case.messages[-1][1])) for case in cases[name]}
        assert not {text for text in judged & said if len(text.split()) > 2}, name


def test_training_has_no_three_words_in_a_row_of_a_free_wish_from_its_tables():
    runs = lambda text: {tuple(words(text)[at : at + 3]) for at in range(len(words(text)) - 2)}  # noqa: E731
    free = set().union(*(runs(wish.text) for wish in read_free_wishes()))
    assert len(free) > 400
    assert not [cue.text for cue in cues() if runs(cue.text) & free]


def test_pairs_and_bare_words_stay_apart():
    rng = random.Random(3)
    pairs = lambda wish: {tuple(sorted((a, b))) for a in wish.keys for b in wish.keys if a != b}  # noqa: E731
    seen = set().union(*(pairs(make_wish(rng, family=family)) for family in FAMILIES for _ in range(150)))
    for family in ("category + doing", "two keywords", "mixed"):
        for _ in range(100):
            assert not pairs(make_wish(rng, Split(unseen_pairs=True), family)) & seen
    bare = {make_wish(rng, Split(bare_keywords=True), "keyword").keys[0] for _ in range(100)}
    in_sentences = {wish.keys[0] for _ in range(1500) if (wish := make_wish(rng, family="filler")).keys}
    assert not bare & in_sentences
    assert len(bare) > 40


def test_free_wishes_are_a_hundred_at_least_and_all_fit_something():
    wishes = read_free_wishes()
    assert len(wishes) >= 100
    assert all(wish.things for wish in wishes)


def test_hold_outs_are_always_the_same():
    assert hold_outs(20) == hold_outs(20)
