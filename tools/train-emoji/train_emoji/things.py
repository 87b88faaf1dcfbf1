"""The things that the model can draw, the colors behind them, and which pairs of the two are held out."""

import json
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from train_emoji.sources import source_file

COLORS: dict[str, tuple[int, int, int]] = {
    "red": (215, 40, 40),
    "orange": (245, 140, 30),
    "yellow": (250, 220, 60),
    "green": (60, 160, 70),
    "blue": (50, 100, 220),
    "purple": (130, 60, 180),
    "pink": (250, 150, 190),
    "white": (248, 248, 248),
    "black": (22, 22, 24),
    "gray": (135, 135, 138),
}
"""Backgrounds: sRGB, 0…255."""

COLOR_NAMES = tuple(COLORS)


class Thing(NamedTuple):
    """One emoji and what captions call it; the first noun is the most usual."""

    characters: str
    nouns: tuple[str, ...]


@cache
def all_things() -> tuple[Thing, ...]:
    """The things of things.txt, in its order.

    A line of it is `name in emoji-datasource:noun|synonym|…`; the nouns were written by hand.
    """
    code_points: dict[str, str] = {}
    for entry in json.loads(source_file("emoji.json").read_text()):
        if entry["name"]:
            code_points.setdefault(entry["name"].lower(), entry["unified"])
    things = []
    for line in files("train_emoji").joinpath("things.txt").read_text().splitlines():
        name, nouns = line.split(":")
        characters = "".join(chr(int(code, 16)) for code in code_points[name].split("-"))
        things.append(Thing(characters, tuple(nouns.split("|"))))
    return tuple(things)


def is_held_out(thing: int, color: int) -> bool:
    """Whether text and UNet never see this thing on this color: one color of each thing."""
    return (7 * thing + 3 * color) % 10 == 0


def held_out_pairs(things: int) -> list[tuple[int, int]]:
    """(thing, color) of all held-out pairs of the first `things` things: one a thing."""
    return [(thing, color) for thing in range(things) for color in range(len(COLORS)) if is_held_out(thing, color)]
