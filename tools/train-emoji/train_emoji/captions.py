"""Captions of scenes: twelve sentences with a background and six without, synonyms, sizes, adjectives, endings."""

import numpy as np

from train_emoji.pictures import Scene
from train_emoji.things import COLOR_NAMES, Thing

_ADJECTIVES = ("cute", "beautiful", "nice", "simple", "shiny", "cartoon", "colorful", "pretty", "funny", "flat")
_ENDINGS = (", high quality", ", best quality", ", detailed", ", digital art", ", 4k", ", sharp")
_SIZE_WORDS = {"big": ("big ", "large ", "huge "), "small": ("small ", "little ", "tiny ")}
_PLURAL = ("headphones",)


def with_article(noun: str) -> str:
    """The noun with "a" or "an": "u" sounds like "you" in the nouns that there are."""
    if noun in _PLURAL:
        return noun
    return ("an " if noun[0] in "aeio" else "a ") + noun


def write_caption(things: tuple[Thing, ...], scene: Scene, rng: np.random.Generator, *, empty: float = 0.1) -> str:
    """A random caption that is true of the scene; "" with the probability `empty`, for classifier-free guidance."""
    if rng.random() < empty:
        return ""
    caption = _write_sentence(things[scene.thing], scene, rng)
    if rng.random() < 0.06:
        caption += _pick(_ENDINGS, rng)
    return caption


def held_out_prompt(things: tuple[Thing, ...], thing: int, color: int) -> str:
    """What the model is asked when it is judged: "a cat face on a blue background"."""
    return f"{with_article(things[thing].nouns[0])} on {_with_article_of_color(COLOR_NAMES[color])} background"


def _write_sentence(thing: Thing, scene: Scene, rng: np.random.Generator) -> str:
    noun = thing.nouns[0] if rng.random() < 0.6 else _pick(thing.nouns, rng)
    if rng.random() < 0.1:
        noun = f"{_pick(_ADJECTIVES, rng)} {noun}"
    if scene.size != "medium" and rng.random() < 0.6:
        noun = _pick(_SIZE_WORDS[scene.size], rng) + noun
    one = with_article(noun)
    if rng.random() < 0.2:
        return _pick(
            (noun, one, f"an emoji of {one}", f"a picture of {one}", f"a photo of {one}", f"a drawing of {one}"), rng
        )
    color = _name_background(scene, rng)
    behind = f"{_with_article_of_color(color)} background"
    return _pick(
        (
            f"{one} on {behind}",
            f"{one} on {behind}",
            f"{noun}, {color} background",
            f"{noun} on {color}",
            f"{color} background with {one}",
            f"{one}, {color} background",
            f"{noun} {color} background",
            f"a picture of {one} on {behind}",
            f"an emoji of {one} on {behind}",
            f"a drawing of {one}, {color} background",
            f"an icon of {one} with {behind}",
            f"{one} in front of {behind}",
        ),
        rng,
    )


def _name_background(scene: Scene, rng: np.random.Generator) -> str:
    color = COLOR_NAMES[scene.color]
    if color == "gray" and rng.random() < 0.3:
        color = "grey"
    if scene.gradient:
        return f"{color} gradient" if rng.random() < 0.5 else color
    return f"plain {color}" if rng.random() < 0.1 else color


def _with_article_of_color(color: str) -> str:
    return ("an " if color[0] in "aeiou" else "a ") + color


def _pick(choices: tuple[str, ...], rng: np.random.Generator) -> str:
    return choices[int(rng.integers(len(choices)))]
