"""What the picture model can draw, and the sentence that asks for it."""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

COLORS = ("red", "orange", "yellow", "green", "blue", "purple", "pink", "white", "black", "gray")
SIZES = ("big", "large", "huge", "small", "little", "tiny")
STYLES = ("cute", "beautiful", "nice", "simple", "shiny", "cartoon", "colorful", "pretty", "funny", "flat")
"""Adjectives of the picture model's captions."""

_TABLE = Path(__file__).resolve().parents[2] / "train-emoji/train_emoji/things.txt"
_PLURAL = ("headphones",)
_FORM = re.compile(rf"(?P<thing>.+) on (?P<color>an? (?:{'|'.join(COLORS)})) (?P<gradient>gradient )?background")


@cache
def all_nouns() -> tuple[tuple[str, ...], ...]:
    """For each thing its nouns, the usual one first; a thing is its number in this list."""
    lines = _TABLE.read_text().splitlines()
    return tuple(tuple(line.split(":")[1].split("|")) for line in lines)


@cache
def thing_of_noun() -> dict[str, int]:
    """The thing that a noun means."""
    pairs = [(noun, thing) for thing, nouns in enumerate(all_nouns()) for noun in nouns]
    return dict(reversed(pairs))


def with_article(words: str) -> str:
    """The words with "a" or "an" as it is spoken: an umbrella, a unicorn, a ufo; headphones have none."""
    if words.endswith(_PLURAL):
        return words
    vowel = words[:1] in "aeiou" and not words.startswith(("uni", "ufo", "use", "euro", "one-", "eu"))
    return f"{'an' if vowel or words.startswith('hour') else 'a'} {words}"


@dataclass(frozen=True)
class Prompt:
    """What an answer says."""

    thing: int
    noun: str
    color: str
    size: str | None = None
    style: str | None = None
    gradient: bool = False

    def __str__(self) -> str:
        words = " ".join(word for word in (self.size, self.style, self.noun) if word)
        behind = f"{self.color} gradient background" if self.gradient else f"{self.color} background"
        return f"{with_article(words)} on {with_article(behind)}"


def parse_prompt(text: str) -> Prompt | None:
    """What a well-formed answer says; None: it is none, or has a wrong article."""
    form = _FORM.fullmatch(text)
    if form is None:
        return None
    words = re.sub("^an? ", "", form["thing"])
    size, rest = _cut(words, SIZES)
    style, noun = (None, rest) if rest in thing_of_noun() else _cut(rest, STYLES)
    if noun not in thing_of_noun():
        return None
    color = form["color"].split()[1]
    prompt = Prompt(thing_of_noun()[noun], noun, color, size, style, form["gradient"] is not None)
    return prompt if str(prompt) == text else None


def _cut(words: str, first: tuple[str, ...]) -> tuple[str | None, str]:
    head, _, rest = words.partition(" ")
    return (head, rest) if head in first and rest else (None, words)
