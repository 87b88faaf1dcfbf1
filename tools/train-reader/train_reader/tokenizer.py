"""Byte-level BPE that reads capitals as small letters, and ChatML with images before the text of a message."""

import json
import random
from pathlib import Path

from tokenizers import Tokenizer
from train_emoji.pictures import Scene
from train_emoji.things import COLOR_NAMES, Thing
from train_writer.tokenizer import train_bpe

from train_reader.questions import ask

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<image>")
PAD, BEGIN, END, IMAGE = range(4)
TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' }}"
    "{% if message['content'] is string %}"
    "{{ message['content'] if message['role'] == 'assistant' else ' ' + (message['content'] | trim) }}"
    "{% else %}"
    "{% for part in message['content'] if part['type'] == 'image' %}{{ '<image>' }}{% endfor %}"
    "{% for part in message['content'] if part['type'] == 'text' %}{{ ' ' + (part['text'] | trim) }}{% endfor %}"
    "{% endif %}"
    "{{ '<|im_end|>\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)


def train_tokenizer(vocabulary: int, things: tuple[Thing, ...], seed: int) -> Tokenizer:
    """Learns the vocabulary from questions and answers."""
    rng = random.Random(f"{seed} tokenizer")
    texts = []
    for at in range(20_000):
        size = rng.choice(("small", "medium", "big"))
        scene = Scene(at % len(things), rng.randrange(len(COLOR_NAMES)), rng.random() < 0.3, size)
        turn = ask(scene, things, rng)
        texts += [f"user\n {turn.question}", f"assistant\n{turn.answer}"]
    return train_bpe(texts, vocabulary, SPECIAL)


def write_tokenizer(tokenizer: Tokenizer, directory: Path, context: int) -> None:
    """tokenizer.json and tokenizer_config.json, for transformers, transformers.js and Darkroom."""
    tokenizer.save(str(directory / "tokenizer.json"))
    flags = {"lstrip": False, "normalized": False, "rstrip": False, "single_word": False, "special": True}
    config = {
        "added_tokens_decoder": {str(at): {"content": token, **flags} for at, token in enumerate(SPECIAL)},
        "add_bos_token": False,
        "bos_token": SPECIAL[BEGIN],
        "eos_token": SPECIAL[END],
        "pad_token": SPECIAL[PAD],
        "unk_token": None,
        "chat_template": TEMPLATE,
        "clean_up_tokenization_spaces": False,
        "model_max_length": context,
        "processor_class": "LlavaProcessor",
        "tokenizer_class": "PreTrainedTokenizerFast",
    }
    (directory / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n")
