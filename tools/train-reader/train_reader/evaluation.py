"""Judges a model's directory by its ONNX files: drawn images, and images that emoji-sd generated."""

import json
import random
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer
from train_emoji.captions import held_out_prompt
from train_emoji.evaluation import OnnxModel, Sampling, load_graph
from train_emoji.pictures import Scene, Sprites, draw_scene, paint
from train_emoji.recognition import Recognizer, find_color
from train_emoji.things import COLOR_NAMES, Thing, held_out_pairs
from train_writer.things import parse_prompt

from train_reader.images import change_image, to_pixel_values
from train_reader.questions import WORDINGS, ask
from train_reader.tokenizer import END, IMAGE

_LONGEST_ANSWER = 32


class OnnxReader:
    """One variant of a model on the CPU, greedy, one question at a time."""

    def __init__(self, directory: Path, suffix: str) -> None:
        self._encoder, self._embeddings, self._decoder = (
            load_graph(directory / f"onnx/{part}{suffix}.onnx", 1) for part in ("vision_encoder", "embed_tokens", "decoder_model_merged")
        )
        self._tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
        self._past = {
            node.name: np.zeros([1, node.shape[1], 0, node.shape[3]], np.float32)
            for node in self._decoder.get_inputs()
            if node.name.startswith("past_key_values.")
        }

    def encode_image(self, image: np.ndarray) -> np.ndarray:
        """uint8 [side, side, 3] → [patches, width]."""
        return self._encoder.run(None, {"pixel_values": to_pixel_values(image[None])})[0][0]

    def answer(self, features: np.ndarray, question: str) -> str:
        """The answer to a question about an encoded image."""
        text = "<|im_end|>\n<|im_start|>assistant\n"
        before = self._tokenizer.encode("<|im_start|>user\n", add_special_tokens=False).ids
        after = self._tokenizer.encode(f" {question}{text}", add_special_tokens=False).ids
        ids = [*before, *[IMAGE] * len(features), *after]
        embeddings = self._embed(ids)
        embeddings[0, len(before) : len(before) + len(features)] = features
        past, length, written = self._past, 0, []
        while len(written) < _LONGEST_ANSWER:
            count = embeddings.shape[1]
            feeds = {
                "inputs_embeds": embeddings,
                "attention_mask": np.ones([1, length + count], np.int64),
                "position_ids": np.arange(length, length + count)[None],
            }
            logits, *present = self._decoder.run(None, feeds | past)
            token = int(logits[0, -1].argmax())
            if token == END:
                break
            written.append(token)
            length += count
            past = dict(zip(self._past, present, strict=True))
            embeddings = self._embed([token])
        return self._tokenizer.decode(written)

    def _embed(self, ids: list[int]) -> np.ndarray:
        return self._embeddings.run(None, {"input_ids": np.array([ids])})[0]


@dataclass
class Tally:
    """Right answers of all, by what was asked for."""

    right: dict[str, int] = field(default_factory=dict)
    asked: dict[str, int] = field(default_factory=dict)

    def add(self, name: str, is_right: bool) -> None:
        """Counts an answer."""
        self.right[name] = self.right.get(name, 0) + is_right
        self.asked[name] = self.asked.get(name, 0) + 1

    def shares(self) -> dict[str, float]:
        """Percent."""
        return {name: round(100 * self.right[name] / count, 1) for name, count in self.asked.items()}


def judge_drawn(
    reader: OnnxReader, things: tuple[Thing, ...], sprites: Sprites, *, is_new: bool = True, is_changed: bool = False
) -> dict[str, float]:
    """Asks about font images of the held-out pairs, each family once.

    `is_new`: in wordings that training does not have. `is_changed`: shifted, blurred, noisy or compressed. `nearest …` is the
    baseline: Recognizer, which compares pixels.
    """
    tally, recognizer = Tally(), Recognizer(sprites)
    rng, words = np.random.default_rng(7), random.Random(7)
    for thing, color in held_out_pairs(len(things)):
        scene = _held_out_scene(rng, thing, color)
        image = (paint(scene, sprites) * 255).round().astype(np.uint8)
        image = change_image(image, rng) if is_changed else image
        features = reader.encode_image(image)
        for family in WORDINGS:
            turn = ask(scene, things, words, held_out=is_new, family=family)
            answer = reader.answer(features, turn.question)
            tally.add(family, answer == turn.answer)
            if family == "describe":
                _judge_description(tally, answer, thing, color)
        tally.add("nearest: thing", recognizer.find_thing(image / 255) == thing)
        tally.add("nearest: color", find_color(image / 255) == color)
    return tally.shares()


def _held_out_scene(rng: np.random.Generator, thing: int, color: int) -> Scene:
    while True:
        scene = draw_scene(rng, thing, held_out=True)
        if scene.color == color:
            return scene


def _judge_description(tally: Tally, answer: str, thing: int, color: int) -> None:
    said = parse_prompt(answer)
    tally.add("describe: form", said is not None)
    tally.add("describe: thing", said is not None and said.thing == thing)
    tally.add("describe: color", said is not None and said.color == COLOR_NAMES[color])


def judge_generated(reader: OnnxReader, painter: Path, things: tuple[Thing, ...], sprites: Sprites, count: int) -> dict[str, float]:
    """Asks for descriptions of images that emoji-sd (INT8) generates of held-out pairs."""
    tally, recognizer = Tally(), Recognizer(sprites)
    model = OnnxModel(painter, "int8", 1)
    pairs = held_out_pairs(len(things))[:: max(1, len(things) // count)]
    for at in range(0, len(pairs), 8):
        some = pairs[at : at + 8]
        pictures = model.make_pictures([held_out_prompt(things, *pair) for pair in some], 70_000 + at, Sampling())
        for (thing, color), picture in zip(some, pictures, strict=True):
            image = (picture * 255).round().astype(np.uint8)
            answer = reader.answer(reader.encode_image(image), "describe the image")
            _judge_description(tally, answer, thing, color)
            tally.add("nearest: thing", recognizer.find_thing(picture) == thing)
            tally.add("nearest: color", find_color(picture) == color)
    return tally.shares()


def judge_model(directory: Path, painter: Path, things: tuple[Thing, ...], sprites: Sprites, count: int) -> dict:
    """All figures of each variant that the directory has, printed as they come."""
    figures = {}
    for name, suffix in (("fp32", ""), ("int8", "_int8")):
        if not (directory / f"onnx/vision_encoder{suffix}.onnx").exists():
            continue
        reader = OnnxReader(directory, suffix)
        figures[name] = {
            "known wordings": judge_drawn(reader, things, sprites, is_new=False),
            "drawn": judge_drawn(reader, things, sprites),
            "changed": judge_drawn(reader, things, sprites, is_changed=True),
            "generated": judge_generated(reader, painter, things, sprites, count),
        }
        print(name, json.dumps(figures[name], indent=2), flush=True)
    return figures
