"""Where embeddings begin: the tokens of cues near those of the nouns that they call for.

So a network need not find out word by word what goes with what; it begins with it, and learns to put it together.
"""

import numpy as np
import torch
from tokenizers import Tokenizer

from train_writer.knowledge import color_words, cues
from train_writer.things import COLORS, SIZES, STYLES, all_nouns, with_article

_MEANING = 0.12
"""The size of what a token means: its root mean square."""
_NOISE = 0.02
_NOUN = 8.0
"""How much more a noun of a thing has to do with it than a cue."""


def place_tokens(tokenizer: Tokenizer, vocabulary: int, width: int, seed: int) -> torch.Tensor:
    """The first embeddings: [vocabulary, width].

    What tokens have to do with things and colours (positive pointwise mutual information) is cut down to half the width by a
    singular value decomposition; tokens that answers are made of share a direction besides, by which they can be told from cues.
    """
    rng = np.random.default_rng([seed, *b"placing"])
    bonds = _count_bonds(tokenizer, vocabulary)
    expected = bonds.sum(1, keepdims=True) * bonds.sum(0, keepdims=True) / bonds.sum()
    information = np.log(np.maximum(bonds, 1e-9) / np.maximum(expected, 1e-9)).clip(0)
    left, values, _ = np.linalg.svd(information, full_matrices=False)
    size = min(width // 2, len(values))
    meaning = left[:, :size] * np.sqrt(values[:size])
    meaning /= np.sqrt((meaning**2).sum(1, keepdims=True)).clip(1e-9)
    # Spread over all places of the width, and the shared direction orthogonal to that.
    turn = np.linalg.qr(rng.standard_normal((width, width)))[0]
    answers = np.zeros((vocabulary, 1))
    answers[_tokens_of_answers(tokenizer)] = 1
    placed = np.concatenate([meaning, answers], 1) @ turn[: size + 1] * _MEANING * width**0.5
    return torch.from_numpy(placed + _NOISE * rng.standard_normal((vocabulary, width))).float()


def _count_bonds(tokenizer: Tokenizer, vocabulary: int) -> np.ndarray:
    """How much each token has to do with each thing and colour: [vocabulary, things and colours]."""
    bonds = np.zeros((vocabulary, len(all_nouns()) + len(COLORS)))

    def add(text: str, columns: list[int], weight: float) -> None:
        tokens = tokenizer.encode(f" {text}").ids
        np.add.at(bonds, (np.repeat(tokens, len(columns)), np.tile(columns, len(tokens))), weight / len(tokens) / len(columns))

    for cue in cues():
        add(cue.text, list(cue.things), 1.0)
    for thing, nouns in enumerate(all_nouns()):
        for noun in nouns:
            add(noun, [thing], _NOUN)
    for word, color in color_words().items():
        add(word, [len(all_nouns()) + COLORS.index(color)], _NOUN)
    return bonds


def _tokens_of_answers(tokenizer: Tokenizer) -> list[int]:
    words = [*SIZES, *STYLES, *(noun for nouns in all_nouns() for noun in nouns)]
    said = [f"{with_article(word)} on {with_article(color)} gradient background<|im_end|>" for word in words for color in COLORS]
    return sorted({token for encoded in tokenizer.encode_batch(said) for token in encoded.ids})
