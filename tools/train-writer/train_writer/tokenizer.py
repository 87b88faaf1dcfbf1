"""Byte-level BPE that reads capitals as small letters, and ChatML with a space before what users say.

So "SOMETHING COLD", "Something cold" and "something cold" are the same tokens, wherever they stand. An answer has no space before it:
it decodes to itself.
"""

import json
import random
from collections.abc import Iterable, Iterator
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from train_writer.chats import make_chat
from train_writer.knowledge import cues
from train_writer.things import COLORS, SIZES, STYLES, all_nouns, with_article

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|mask|>")
PAD, BEGIN, END, MASK = range(4)
TEMPLATE = (
    "{% for message in messages %}"
    "{% if message['role'] not in ['system', 'user', 'assistant'] %}"
    "{{ raise_exception('expected one of the roles system, user and assistant') }}"
    "{% endif %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' }}"
    "{% if message['role'] == 'assistant' %}{{ message['content'] }}{% else %}{{ ' ' + (message['content'] | trim) }}{% endif %}"
    "{{ '<|im_end|>\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)


def render(messages: list[tuple[str, str]], for_answer: bool) -> str:
    """What TEMPLATE makes of messages."""
    text = "".join(f"<|im_start|>{role}\n{words if role == 'assistant' else ' ' + words.strip()}<|im_end|>\n" for role, words in messages)
    return text + ("<|im_start|>assistant\n" if for_answer else "")


def train_tokenizer(vocabulary: int, chats: int, seed: int) -> Tokenizer:
    """Learns the vocabulary from random conversations; each word of an answer becomes one token."""
    return train_bpe(_texts(chats, seed), vocabulary, SPECIAL)


def train_bpe(texts: Iterable[str], vocabulary: int, special: tuple[str, ...]) -> Tokenizer:
    """Trains a byte-level BPE that reads capitals as small letters. The special tokens have the first ids."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.Sequence([normalizers.Replace("’", "'"), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[AddedToken(token, special=True, normalized=False) for token in special],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def _texts(chats: int, seed: int) -> Iterator[str]:
    rng = random.Random(f"{seed} tokenizer")
    for _ in range(chats):
        for role, text in make_chat(rng).messages():
            yield f"{role}\n{'' if role == 'assistant' else ' '}{text}"
    for cue in cues():  # against the many words that say nothing
        yield from [f" {cue.text}"] * 20
    words = [*SIZES, *STYLES, *(noun for nouns in all_nouns() for noun in nouns)]
    for word in words:
        for color in COLORS:
            yield from [f"{with_article(word)} on {with_article(color)} background"] * 6


def write_tokenizer(tokenizer: Tokenizer, directory: Path, context: int) -> None:
    """tokenizer.json and tokenizer_config.json, for transformers, transformers.js and Darkroom."""
    tokenizer.save(str(directory / "tokenizer.json"))
    flags = {"lstrip": False, "normalized": False, "rstrip": False, "single_word": False, "special": True}
    config = {
        "added_tokens_decoder": {str(at): {"content": token, **flags} for at, token in enumerate(SPECIAL)},
        "add_bos_token": False,
        "add_prefix_space": False,
        "bos_token": SPECIAL[BEGIN],
        "eos_token": SPECIAL[END],
        "pad_token": SPECIAL[PAD],
        "mask_token": SPECIAL[MASK],
        "unk_token": None,
        "additional_special_tokens": [],
        "chat_template": TEMPLATE,
        "clean_up_tokenization_spaces": False,
        "model_max_length": context,
        "padding_side": "left",
        "tokenizer_class": "PreTrainedTokenizerFast",
    }
    (directory / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n")
