"""Which cues a wish is made of, and how they are put into its words."""

import random
import re
from dataclasses import dataclass
from functools import cache

from train_writer.knowledge import Cue, color_words, cues, cues_of_things, held_out, things_named
from train_writer.sources import wordnet
from train_writer.things import SIZES, STYLES, with_article
from train_writer.wordings import frames

_SLOTS = {
    "keyword": "kl", "adjective": "ji", "mood": "m", "place": "w", "occasion": "o", "doing": "de", "purpose": "u",
    "category": "p",
}  # fmt: skip
_UNSEEN_TOGETHER = 0.12
"""The share of pairs of cues that training never has in one wish."""
_SEEN_BARE = 0.06
"""The share of keywords that training has only as a word of its own, in no sentence."""


@dataclass(frozen=True)
class Split:
    """What wishes are made of. Training's: nothing of what is held out; a hold-out's: only one thing that is."""

    unseen_frames: bool = False
    unseen_pairs: bool = False
    bare_keywords: bool = False

    def frame(self, rng: random.Random, name: str) -> str:
        """One of a list."""
        return rng.choice(frames(name, self.unseen_frames))


TRAINING = Split()


def is_seen_bare(cue: Cue) -> bool:
    """Whether training has it only as a word of its own."""
    return cue.kind == "keyword" and held_out(f"bare {cue.text}", _SEEN_BARE)


@cache
def cues_by_kind() -> dict[str, list[Cue]]:
    """All cues, by their kind."""
    found: dict[str, list[Cue]] = {}
    for cue in cues():
        found.setdefault(cue.kind, []).append(cue)
    return found


def are_apart(first: Cue, second: Cue) -> bool:
    """Whether training never has both in one wish."""
    return held_out("pair " + " + ".join(sorted((first.text, second.text))), _UNSEEN_TOGETHER)


def pick_cues(rng: random.Random, split: Split, kinds: list[str]) -> list[Cue]:
    """Cues of these kinds that one thing at least has all of."""
    while True:
        if len(kinds) == 1:
            found = [rng.choice(cues_by_kind()[kinds[0]])]
        else:
            of_thing = rng.choice(cues_of_things())
            found = [rng.choice([cue for cue in of_thing if cue.kind == kind] or [Cue("", "", ())]) for kind in kinds]
        if not all(cue.text for cue in found) or len({cue.text for cue in found}) < len(found):
            continue
        wanted = not split.bare_keywords and not any(map(is_seen_bare, found))
        if split.bare_keywords:
            wanted = all(cue.kind != "keyword" or is_seen_bare(cue) for cue in found)
        pairs = [(a, b) for at, a in enumerate(found) for b in found[:at]]
        apart = [are_apart(*pair) for pair in pairs]
        if wanted and (any(apart) if split.unseen_pairs else not any(apart)):
            return found


def common_things(found: list[Cue]) -> tuple[int, ...]:
    """What all of some cues call for, in the order of the one that calls for the fewest."""
    shortest = min(found, key=lambda cue: len(cue.things))
    return tuple(thing for thing in shortest.things if all(thing in cue.things for cue in found))


def fill_frame(frame: str, found: list[Cue]) -> str:
    """Puts cues into a frame: the first of a kind into its first slot, and so on."""
    values: dict[str, str] = {}
    for cue in found:
        slot = next(slot for slot in _SLOTS[cue.kind] if slot not in values)
        values[slot] = cue.text
        if cue.kind == "category":
            values["c"] = with_article(cue.text)
    text = frame.format(**values)
    return re.sub(r"\ba (?=[aeiou](?!ni|fo|se))", "an ", text)


def kinds_in_frame(frame: str) -> list[str]:
    """What a frame has slots for."""
    slots = set(re.findall(r"\{(\w)\}", frame)) - {"z"}
    kinds = [kind for kind, letters in _SLOTS.items() for letter in letters if letter in slots]
    return [*kinds, *(["category"] if "c" in slots and "p" not in slots else [])]


@cache
def favorites() -> tuple[int, ...]:
    """The things that are drawn for whoever leaves it open."""
    return things_named("star, cat, rainbow, smiley face, balloon, dog, sun, red heart, rocket, cupcake, guitar, unicorn")


@cache
def alike(thing: int) -> tuple[int, ...]:
    """Other things of the smallest category that has three at least; of what has none, the favourites."""
    categories = [cue.things for cue in cues_of_things()[thing] if cue.kind == "category" and len(cue.things) > 2]
    found = min(categories, key=len, default=favorites())
    return tuple(other for other in found if other != thing)


@cache
def noise_words() -> list[str]:
    """Nouns that have to do with no thing."""
    known = {word for cue in cues() for word in cue.text.split()} | set(color_words()) | set(SIZES) | set(STYLES)
    return [word for word in wordnet().common_nouns() if word not in known and word.rstrip("s") not in known]
