"""First wishes: what is asked for, in words."""

import random
import re
from dataclasses import dataclass, field, replace

from train_writer.knowledge import Cue, color_words, cues_of_things, suiting_colors, things_named
from train_writer.picking import (
    TRAINING,
    Split,
    are_apart,
    common_things,
    cues_by_kind,
    favorites,
    fill_frame,
    is_seen_bare,
    kinds_in_frame,
    noise_words,
    pick_cues,
)
from train_writer.things import COLORS, SIZES, STYLES, Prompt, all_nouns, with_article

FAMILIES = {
    "thing": 11.0, "keyword": 10.0, "keyword sentence": 8.0, "two keywords": 5.0, "filler": 10.0, "noise": 6.0,
    "category": 4.0, "category sentence": 2.0, "adjective": 5.0, "adjective sentence": 1.5, "mood": 5.0,
    "place": 3.5, "place sentence": 3.0, "occasion": 3.0, "occasion sentence": 3.0, "doing": 7.0, "doing sentence": 5.0,
    "purpose": 2.0, "purpose sentence": 1.5, "category + place": 3.0, "category + doing": 4.0,
    "category + adjective": 4.0, "category + occasion": 1.5, "category + keyword": 3.0, "two adjectives": 2.0,
    "two doings": 2.0, "mixed": 5.0, "saying": 11.0, "story": 5.0, "not": 6.0, "not only": 2.0, "or": 1.0,
    "anything": 1.0, "hello": 0.7, "nonsense": 1.5,
}  # fmt: skip
"""Kinds of first wishes, and how often training has them."""

_SIZE_WORDS = {"giant": "huge", "enormous": "huge", "gigantic": "huge", "mini": "tiny", "miniature": "tiny"} | {
    size: size for size in SIZES
}
_SHADES = ("dark", "light", "bright", "pale", "deep", "pastel", "soft", "neon")
_SYLLABLES = (
    "ba", "zor", "mi", "qua", "lu", "tek", "fro", "gni", "shap", "ar", "ox", "pli", "ent", "su", "vor", "ing", "ka", "del",
    "mou", "tri",
)  # fmt: skip


@dataclass(frozen=True)
class Wish:
    """A wish, and what answers it."""

    text: str
    family: str
    things: tuple[int, ...]
    """That fit, the most typical first."""
    noun: str | None = None
    """What the wish calls the thing."""
    colors: tuple[str, ...] = ()
    """Backgrounds that go with the words, if none is asked for."""
    color: str | None = None
    size: str | None = None
    style: str | None = None
    gradient: bool = False
    keys: tuple[str, ...] = field(default=())
    """The cues in it."""


def make_wish(rng: random.Random, split: Split = TRAINING, family: str | None = None) -> Wish:
    """A random wish."""
    family = family or rng.choices(list(FAMILIES), list(FAMILIES.values()))[0]
    wish = _MAKERS.get(family, _make_of_cues)(rng, split, family)
    wish = _add_color(rng, split, wish)
    if family != "hello" and rng.random() < 0.3:
        wish = replace(wish, text=split.frame(rng, "around").format(x=wish.text))
    return wish


def answer_wish(rng: random.Random, wish: Wish) -> Prompt:
    """An answer as a person might give it: mostly the typical one."""
    weights = [(1 + rank) ** -1.2 for rank in range(len(wish.things))]
    thing = rng.choices(wish.things, weights)[0]
    noun = wish.noun if wish.noun in all_nouns()[thing] else all_nouns()[thing][0]
    colors = wish.colors or suiting_colors()[thing]
    color = wish.color or colors[0 if rng.random() < 0.8 else -1]
    return Prompt(thing, noun, color, wish.size, wish.style, wish.gradient)


def pick_color(rng: random.Random) -> tuple[str, str]:
    """A word for a colour, and the one of the ten that it means."""
    if rng.random() < 0.4:
        word = rng.choice(list(color_words()))
        return word, color_words()[word]
    color = rng.choice(COLORS)
    return (f"{rng.choice(_SHADES)} {color}" if rng.random() < 0.15 else color), color


def name_thing(rng: random.Random, thing: int) -> str:
    """One of its nouns, mostly the usual one."""
    nouns = all_nouns()[thing]
    return nouns[0] if rng.random() < 0.6 else rng.choice(nouns)


def strip_end(text: str) -> str:
    """Without marks at the end, so that words can follow."""
    return text.rstrip("?!. ")


def _make_of_cues(rng: random.Random, split: Split, family: str) -> Wish:
    frame = split.frame(rng, family)
    if family == "noise":
        frame = frame.replace("{z}", rng.choice(noise_words()))
    kinds = kinds_in_frame(frame)
    found = pick_cues(rng, split, kinds)
    if family.startswith("keyword") and split == TRAINING and rng.random() < 0.25:
        found = [rng.choice(cues_by_kind()["keyword"])]
        frame = "{k}" if is_seen_bare(found[0]) else frame
    text = fill_frame(frame, found)
    if not family.endswith("sentence") and family not in ("mood", "filler", "noise", "two doings", "mixed"):
        text = split.frame(rng, "request").format(x=strip_end(text)) if rng.random() < 0.55 else text
    colors = next((cue.colors for cue in found if cue.colors), ())
    noun = found[0].text if len(found) == 1 else None
    return Wish(text, family, common_things(found), noun, colors, keys=tuple(cue.text for cue in found))


def _make_thing(rng: random.Random, split: Split, family: str) -> Wish:
    thing = rng.randrange(len(all_nouns()))
    noun = name_thing(rng, thing)
    size, style = None, None
    said = noun
    if rng.random() < 0.1:
        style = rng.choice(STYLES)
        said = f"{style} {said}"
    if rng.random() < 0.15:
        word = rng.choice(list(_SIZE_WORDS))
        size = _SIZE_WORDS[word]
        said = f"{word} {said}"
    color = None
    if size is None and style is None and rng.random() < 0.1 and not set(noun.split()) & set(COLORS):
        word, color = pick_color(rng)
        said = f"{word} {noun}"
    text = split.frame(rng, family).format(a=with_article(said), n=said)
    if rng.random() < 0.5:
        text = split.frame(rng, "request").format(x=text)
    return Wish(_fix(text), family, (thing,), noun, size=size, style=style, color=color)


def _fix(text: str) -> str:
    return re.sub(r"\ba (?=[aeio]|umbrella|ugly)", "an ", text)


def _make_saying(rng: random.Random, split: Split, family: str) -> Wish:
    cue = rng.choice(cues_by_kind()["saying"])
    return Wish(cue.text, family, cue.things, keys=(cue.text,))


def _make_story(rng: random.Random, split: Split, family: str) -> Wish:
    """Two or three sentences about one thing."""
    of_thing = rng.choice(cues_of_things())
    lists = rng.choices(["filler", "keyword sentence", "doing sentence", "noise", "saying"], [4, 3, 4, 2, 2], k=rng.randint(2, 3))
    found: list[Cue] = []
    texts = []
    for name in lists:
        frame = "" if name == "saying" else split.frame(rng, name).replace("{z}", rng.choice(noise_words()))
        kinds = kinds_in_frame(frame) if frame else ["saying"]
        some = [cue for cue in of_thing if cue.kind in kinds and not is_seen_bare(cue)]
        picked = [rng.choice([cue for cue in some if cue.kind == kind] or [Cue("", "", ())]) for kind in kinds]
        if all(cue.text for cue in picked) and len({cue.text for cue in picked}) == len(picked):
            found += picked
            texts.append(picked[0].text if not frame else fill_frame(frame, picked))
    pairs = [(a, b) for at, a in enumerate(found) for b in found[:at]]
    if not found or any(are_apart(*pair) for pair in pairs) != split.unseen_pairs:
        return _make_story(rng, split, family)
    text = rng.choice((". ", ", ", " and ", " - ", "! ", " because ")).join(map(strip_end, texts))
    return Wish(text, family, common_things(found), keys=tuple(cue.text for cue in found))


def _make_not(rng: random.Random, split: Split, family: str) -> Wish:
    """What is asked for, less a category or a thing in it."""
    while True:
        kind = rng.choice(["adjective", "place", "category", "occasion", "doing", "keyword"])
        (cue,) = pick_cues(rng, split, [kind])
        if rng.random() < 0.5:
            without = rng.choice(cues_by_kind()["category"])
        else:
            thing = rng.choice(cue.things)
            without = Cue("category", name_thing(rng, thing), (thing,))
        left = tuple(thing for thing in cue.things if thing not in without.things)
        if left and len(left) < len(cue.things):
            break
    name = kind if kind not in ("adjective", "place", "occasion") or rng.random() < 0.8 else f"{kind} sentence"
    said = strip_end(fill_frame(split.frame(rng, name), [cue]))
    text = split.frame(rng, family).format(x=said, c=with_article(without.text), p=without.text)
    if rng.random() < 0.3:
        text = split.frame(rng, "request").format(x=text)
    return Wish(text, family, left, colors=cue.colors, keys=(cue.text, without.text))


def _make_not_only(rng: random.Random, split: Split, family: str) -> Wish:
    without = rng.choice(cues_by_kind()["category"])
    text = split.frame(rng, family).format(c=with_article(without.text), p=without.text)
    return Wish(text, family, tuple(thing for thing in favorites() if thing not in without.things), keys=(without.text,))


def _make_or(rng: random.Random, split: Split, family: str) -> Wish:
    things = tuple(rng.sample(range(len(all_nouns())), 2))
    first, second = (with_article(all_nouns()[thing][0]) for thing in things)
    text = split.frame(rng, family).format(a=first, b=second)
    return Wish(split.frame(rng, "request").format(x=text) if rng.random() < 0.4 else text, family, things)


def _make_anything(rng: random.Random, split: Split, family: str) -> Wish:
    return Wish(split.frame(rng, family), family, favorites())


def _make_hello(rng: random.Random, split: Split, family: str) -> Wish:
    return Wish(split.frame(rng, family), family, things_named("smiley face, robot"), colors=("yellow", "blue"))


def _make_nonsense(rng: random.Random, split: Split, family: str) -> Wish:
    """Words that nobody knows break neither the form nor the colour."""
    word = "".join(rng.choice(_SYLLABLES) for _ in range(rng.randint(1, 4)))
    if rng.random() < 0.5:
        word = rng.choice(noise_words())
    text = rng.choice((with_article(word), f"something {word}", word, f"my {word} and me"))
    return Wish(split.frame(rng, "request").format(x=text), family, favorites())


def _add_color(rng: random.Random, split: Split, wish: Wish) -> Wish:
    share = {"hello": 0.0, "nonsense": 0.6}.get(wish.family, 0.4)
    if wish.color or rng.random() >= share:
        return wish
    word, color = pick_color(rng)
    gradient = rng.random() < 0.06
    frame = split.frame(rng, "gradient" if gradient else "color")
    text = frame.format(x=strip_end(wish.text), q=word, aq=with_article(word))
    return replace(wish, text=text, color=color, gradient=gradient)


_MAKERS = {
    "thing": _make_thing,
    "saying": _make_saying,
    "story": _make_story,
    "not": _make_not,
    "not only": _make_not_only,
    "or": _make_or,
    "anything": _make_anything,
    "hello": _make_hello,
    "nonsense": _make_nonsense,
}
