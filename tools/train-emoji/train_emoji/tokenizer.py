"""The tokenizer: a byte-level BPE in CLIP's format, trained on captions until every word of theirs is one token."""

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import regex
from transformers import CLIPTokenizer

from train_emoji.captions import write_caption
from train_emoji.pictures import Scene
from train_emoji.things import COLORS, Thing

START, END = "<|startoftext|>", "<|endoftext|>"
LENGTH = 77
"""Tokens of a prompt, start, end and padding counted."""

# CLIP's own pattern (openai/CLIP, simple_tokenizer.py), without its special tokens.
_WORD = regex.compile(r"""'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+""", regex.IGNORECASE)


def count_words(things: tuple[Thing, ...], captions: int) -> Counter[str]:
    """How often each word comes up in so many random captions; always the same ones."""
    rng = np.random.default_rng(5)
    counts: Counter[str] = Counter()
    for number in range(captions):
        color, gradient = int(rng.integers(len(COLORS))), bool(rng.random() < 0.3)
        size = ("medium", "big", "small")[int(rng.integers(3))]
        caption = write_caption(things, Scene(number % len(things), color, gradient, size), rng, empty=0)
        counts.update(_WORD.findall(caption.lower()))
    return counts


def learn_merges(counts: Counter[str]) -> list[tuple[str, str]]:
    """Byte pair encoding: joins the most frequent pair of neighbours until each word is one token.

    Of equally frequent pairs the first in order of code points is taken, so that the result depends on nothing else.
    """
    letters = _byte_characters()
    words = {word: _split_word(word, letters) for word in counts}
    merges: list[tuple[str, str]] = []
    while True:
        pairs: Counter[tuple[str, str]] = Counter()
        for word, tokens in words.items():
            for pair in pairwise(tokens):
                pairs[pair] += counts[word]
        if not pairs:
            return merges
        best = max(sorted(pairs), key=lambda pair: pairs[pair])
        merges.append(best)
        words = {word: _join_pair(tokens, best) for word, tokens in words.items()}


def write_tokenizer(directory: Path, merges: list[tuple[str, str]]) -> None:
    """Writes vocab.json and merges.txt as Stable Diffusion 1.5 has them, and transformers' two small files."""
    letters = list(_byte_characters().values())
    tokens = [*letters, *(f"{letter}</w>" for letter in letters), *("".join(pair) for pair in merges), START, END]
    vocabulary = {token: number for number, token in enumerate(dict.fromkeys(tokens))}
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "vocab.json").write_text(json.dumps(vocabulary, ensure_ascii=False))
    (directory / "merges.txt").write_text("\n".join(["#version: 0.2", *(" ".join(pair) for pair in merges)]) + "\n")
    token = {"lstrip": False, "normalized": True, "rstrip": False, "single_word": False}
    special = {
        "bos_token": {"content": START, **token},
        "eos_token": {"content": END, **token},
        "pad_token": END,
        "unk_token": {"content": END, **token},
    }
    (directory / "special_tokens_map.json").write_text(json.dumps(special, indent=2))
    config = {
        "add_prefix_space": False,
        "do_lower_case": True,
        "errors": "replace",
        "model_max_length": LENGTH,
        "tokenizer_class": "CLIPTokenizer",
        **{
            name: value if name == "pad_token" else {"__type": "AddedToken", **value} for name, value in special.items()
        },
    }
    (directory / "tokenizer_config.json").write_text(json.dumps(config, indent=2, sort_keys=True))


class PromptTokenizer:
    """Prompts to token ids, each prompt computed once."""

    def __init__(self, directory: Path) -> None:
        self._tokenizer = CLIPTokenizer.from_pretrained(str(directory))
        self._ids: dict[str, np.ndarray] = {}
        self.size = len(self._tokenizer)
        """Tokens there are; the last two are start and end."""

    def __call__(self, prompts: list[str]) -> np.ndarray:
        """Int64 [prompts, LENGTH], padded with the end token."""
        return np.stack([self._encode(prompt) for prompt in prompts])

    def _encode(self, prompt: str) -> np.ndarray:
        if prompt not in self._ids:
            ids = self._tokenizer(prompt, padding="max_length", max_length=LENGTH, truncation=True).input_ids
            self._ids[prompt] = np.array(ids, np.int64)
        return self._ids[prompt]


def _byte_characters() -> dict[int, str]:
    """GPT-2's printable character of each byte (openai/gpt-2, encoder.py): its own where it is printable."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in printable]
    return {byte: chr(byte) for byte in printable} | {byte: chr(256 + at) for at, byte in enumerate(others)}


def _split_word(word: str, letters: dict[int, str]) -> list[str]:
    tokens = [letters[byte] for byte in word.encode()]
    return [*tokens[:-1], f"{tokens[-1]}</w>"]


def _join_pair(tokens: list[str], pair: tuple[str, str]) -> list[str]:
    joined: list[str] = []
    at = 0
    while at < len(tokens):
        if tuple(tokens[at : at + 2]) == pair:
            joined.append("".join(pair))
            at += 2
        else:
            joined.append(tokens[at])
            at += 1
    return joined
