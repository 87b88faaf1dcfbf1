"""What words have to do with which things: cues, from the tables in words/ and from the sources."""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from zlib import crc32

from train_writer.sources import emoji_keywords, synset_of_thing, wordnet
from train_writer.things import COLORS, all_nouns

WORDS = Path(__file__).resolve().parent / "words"
KINDS = ("category", "adjective", "mood", "place", "occasion", "doing", "purpose", "keyword")

_KINDS_OF_A_THING = 12
"""Of the kinds that WordNet has of a thing, so many at most."""


@dataclass(frozen=True)
class Cue:
    """Words that call for one of some things."""

    kind: str
    """One of KINDS, or "saying": a sentence of its own."""
    text: str
    things: tuple[int, ...]
    """The most typical first."""
    colors: tuple[str, ...] = ()
    """Backgrounds that go with it."""


def held_out(what: str, share: float) -> bool:
    """Whether something is kept from training: always the same share of everything, whatever is added."""
    return crc32(what.encode()) % 10_000 < share * 10_000


def read_lines(name: str) -> list[str]:
    """The lines of a table of words/ that are no comments."""
    return [line for line in (WORDS / name).read_text().splitlines() if line and not line.startswith("#")]


def split_list(text: str, mark: str = ",") -> list[str]:
    """The parts of a list, without blanks around them."""
    return [part.strip() for part in text.split(mark) if part.strip()]


@cache
def groups() -> dict[str, list[int]]:
    """Things under one name, as the tables call them with @."""
    found: dict[str, list[int]] = {}
    for line in read_lines("groups.txt"):
        name, names = line.split(": ")
        found[name] = _things_of(names, found)
    return found


def things_named(names: str) -> tuple[int, ...]:
    """The things of a list of names and @groups; one after a minus is none of them."""
    kept, *without = names.split(" -")
    return tuple(thing for thing in _things_of(kept, groups()) if thing not in _things_of(",".join(without), {}))


def _things_of(names: str, known: dict[str, list[int]]) -> list[int]:
    first = {nouns[0]: thing for thing, nouns in enumerate(all_nouns())}
    found: dict[int, None] = {}
    for name in split_list(names):
        found |= dict.fromkeys(known[name[1:]] if name.startswith("@") else [first[name]])
    return list(found)


@cache
def color_words() -> dict[str, str]:
    """Every word for a colour, and the one of the ten that it means."""
    rows = [line.split(": ") for line in read_lines("colors.txt")]
    return {word: color for color, words in rows for word in [color, *split_list(words)]} | {c: c for c in COLORS}


@cache
def suiting_colors() -> tuple[tuple[str, ...], ...]:
    """For each thing two backgrounds that suit it, the better one first."""
    of_thing = {}
    for line in read_lines("backgrounds.txt"):
        colors, names = line.split(": ")
        of_thing |= dict.fromkeys(things_named(names), tuple(split_list(colors)))
    return tuple(of_thing[thing] for thing in range(len(all_nouns())))


@dataclass(frozen=True)
class FreeWish:
    """A wish of the hold-out that was written by hand, and what fits it."""

    text: str
    things: tuple[int, ...]
    colors: tuple[str, ...]


def read_free_wishes(path: Path = WORDS / "free-wishes.txt") -> list[FreeWish]:
    """The wishes of a file."""
    wishes = []
    for line in path.read_text().splitlines():
        if line and not line.startswith("#"):
            text, names, colors = (part.strip() for part in line.split("|"))
            wishes.append(FreeWish(text, things_named(names), tuple(split_list(colors))))
    return wishes


@cache
def cues() -> tuple[Cue, ...]:
    """All that training may use. What shares three words in a row with a free wish of the hold-out is left out."""
    kept = [*_from_tables(), *_from_associations(), *_from_sources()]
    merged: dict[tuple[str, str], Cue] = {}
    for cue in kept:
        old = merged.get((cue.kind, cue.text))
        if old:
            cue = Cue(cue.kind, cue.text, tuple(dict.fromkeys([*old.things, *cue.things])), old.colors)
        merged[cue.kind, cue.text] = cue
    return tuple(cue for cue in merged.values() if not _is_told_by_the_holdout(cue.text))


@cache
def cues_of_things() -> list[list[Cue]]:
    """For each thing the cues that call for it."""
    found: list[list[Cue]] = [[] for _ in all_nouns()]
    for cue in cues():
        for thing in cue.things:
            found[thing].append(cue)
    return found


def _from_tables() -> Iterator[Cue]:
    for kind in KINDS:
        for line in read_lines(f"concepts/{kind}.txt"):
            phrases, _, rest = line.partition(": ")
            names, _, colors = rest.partition(" | ")
            for phrase in split_list(phrases):
                yield Cue(kind, phrase, things_named(names), tuple(split_list(colors)))


def _from_associations() -> Iterator[Cue]:
    of_word: dict[tuple[str, str], list[int]] = defaultdict(list)
    for line in read_lines("concepts/associations.txt"):
        name, *columns = line.split(" | ")
        (thing,) = things_named(name)
        for kind, column in zip(("keyword", "doing", "saying"), columns, strict=True):
            for text in split_list(column):
                of_word[kind, text.lower()].append(thing)
    for line in read_lines("concepts/sayings.txt"):
        name, *sentences = line.split(" | ")
        for text in sentences:
            of_word["saying", text.strip().lower()].append(things_named(name)[0])
    for (kind, text), things in of_word.items():
        yield Cue(kind, text, tuple(things))


def _from_sources() -> Iterator[Cue]:
    stop = set(split_list(" ".join(read_lines("stop-words.txt"))))
    of_word: dict[str, list[int]] = defaultdict(list)
    for thing, words in enumerate(emoji_keywords()):
        for word in words:
            if re.fullmatch(r"[a-z' -]{3,}", word) and word not in stop and word not in color_words():
                of_word[word].append(thing)
    for text, things in of_word.items():
        yield Cue("keyword", text, tuple(things))
    yield from _from_wordnet(stop)


def _from_wordnet(stop: set[str]) -> Iterator[Cue]:
    """Kinds of a thing as keywords, what it is a kind of as categories, and what it is in a few words as doings."""
    senses = dict(line.split(":") for line in read_lines("senses.txt"))
    synsets = {
        thing: synset
        for thing in range(len(all_nouns()))
        if (synset := synset_of_thing(thing, {name: sense.strip() for name, sense in senses.items()}))
    }
    nouns = {noun for nouns in all_nouns() for noun in nouns}
    kinds: dict[str, list[int]] = defaultdict(list)
    above: dict[str, list[int]] = defaultdict(list)
    for thing, synset in synsets.items():
        below = [word for other in wordnet().below(synset, 2) for word in wordnet().words(other)]
        for word in [*wordnet().words(synset), *below[:_KINDS_OF_A_THING]]:
            kinds[word].append(thing)
        for other in wordnet().above(synset):
            above[other].append(thing)
        gloss = wordnet().gloss(synset)
        if 3 < len(gloss.split()) < 16:
            yield Cue("saying", gloss, (thing,))
    for word, things in kinds.items():
        if word not in stop and word not in color_words() and (word not in nouns):
            yield Cue("keyword", word, tuple(things))
    for other, things in above.items():
        if 2 <= len(things) <= 40:
            for word in wordnet().words(other):
                if word not in stop:
                    yield Cue("category", word, tuple(things))


@cache
def _runs_of_the_holdout() -> frozenset[tuple[str, ...]]:
    return frozenset(run for wish in read_free_wishes() for run in _runs_of_three(wish.text))


def _runs_of_three(text: str) -> set[tuple[str, ...]]:
    words = re.findall(r"[a-z'-]+", text.lower())
    return {(first, *rest) for first, rest in zip(words, pairwise(words[1:]), strict=False)}


def _is_told_by_the_holdout(text: str) -> bool:
    return not _runs_of_three(text).isdisjoint(_runs_of_the_holdout())
