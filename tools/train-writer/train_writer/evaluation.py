"""Judges a model's directory on what was kept from training."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from train_writer.chats import Chat, make_chat
from train_writer.decoding import Message, Writer
from train_writer.knowledge import FreeWish, read_free_wishes
from train_writer.picking import Split
from train_writer.things import Prompt, parse_prompt
from train_writer.wishes import FAMILIES

_OPEN = ("anything", "hello", "nonsense", "not only")
"""Families without a set of things that fit: only the form and the colour are judged, and that nothing unwanted is drawn."""
_OF_CUES = [name for name in FAMILIES if name not in _OPEN]
_OF_PAIRS = [name for name in FAMILIES if " + " in name or name.startswith("two ") or name in ("mixed", "story")]
_OF_KEYWORDS = ["keyword", "keyword sentence"]


@dataclass(frozen=True)
class Case:
    """What is said to a model, and what a good answer is."""

    messages: list[Message]
    things: tuple[int, ...] | None
    """That fit; None: any."""
    colors: tuple[str, ...]
    """That fit; none: any."""
    kept: Prompt | None = None
    """What was there before, of which thing, size and adjective have to stay."""


@dataclass
class Tally:
    """How many of how many."""

    good: int = 0
    all: int = 0

    def add(self, is_good: bool) -> None:
        """Counts one."""
        self.good, self.all = self.good + is_good, self.all + 1

    def share(self) -> float | None:
        """In percent; None: of nothing."""
        return round(100 * self.good / self.all, 1) if self.all else None


def judge_model(
    directory: Path, weights: str, count: int, wishes: Path | None = None, threads: int = 1
) -> dict[str, dict[str, float | None]]:
    """The figures of a model.

    Args:
        directory: the model's.
        weights: "fp32" or "int8".
        count: cases of each generated hold-out.
        wishes: another file of free wishes to look at besides.
        threads: of onnxruntime.

    Returns:
        For each hold-out in percent: form, fits, color, kept; and in "all" besides the calls a token, of block diffusion.
    """
    writer = Writer(directory, weights, threads)
    figures = {}
    forms = Tally()
    for name, cases in hold_outs(count, wishes).items():
        figures[name] = _judge(writer, cases, forms)
        print(f"{directory.name} {weights}, {name}: {_in_words(figures[name])}", flush=True)
    figures["all"] = {"form": forms.share()}
    if writer.is_diffusion:
        figures["all"]["calls a token"] = round(writer.effort.calls_per_token(), 3)
    print(f"{directory.name} {weights}, all: {_in_words(figures['all'])}", flush=True)
    return figures


def hold_outs(count: int, wishes: Path | None = None) -> dict[str, list[Case]]:
    """What training never saw, in its kinds."""
    found = {
        "unseen wordings": _draw(count, lambda rng: make_chat(rng, Split(unseen_frames=True), rng.choice(_OF_CUES), [])),
        "unseen pairs": _draw(count, lambda rng: make_chat(rng, Split(unseen_pairs=True), rng.choice(_OF_PAIRS), [])),
        "words seen bare": _draw(count, lambda rng: make_chat(rng, Split(bare_keywords=True), rng.choice(_OF_KEYWORDS), [])),
        "then a color": _draw(count, lambda rng: _follow(rng, ["color"])),
        "then others": _draw(count, lambda rng: _follow(rng, [rng.choice(("thing", "bigger", "smaller", "color and size"))])),
        "third turn": _draw(count, lambda rng: _follow(rng, [rng.choice(("thing", "bigger", "color")), "color"])),
        "free wishes": [_free_case(wish) for wish in read_free_wishes()],
    }
    if wishes:
        found[wishes.stem] = [_free_case(wish) for wish in read_free_wishes(wishes)]
    return found


def _follow(rng: random.Random, kinds: list[str]) -> Chat:
    """First wishes as in training: these hold-outs are about what is said next."""
    return make_chat(rng, Split(unseen_frames=True), None, kinds, first=Split())


def _draw(count: int, draw: Callable[[random.Random], Chat]) -> list[Case]:
    rng = random.Random("hold-out")
    return [_case(rng, draw(rng)) for _ in range(count)]


def _case(rng: random.Random, chat: Chat) -> Case:
    last = chat.turns[-1]
    messages = [(role, _write_as_people_do(rng, text) if role == "user" else text) for role, text in chat.messages(with_last_answer=False)]
    if last.kind in ("first", "other", "wish"):
        things = None if last.wish.family in ("anything", "hello", "nonsense") else last.wish.things
        return Case(messages, things, (last.wish.color,) if last.wish.color else ())
    keeps = last.kind in ("color", "bigger", "smaller", "color and size")
    return Case(messages, None if keeps else (last.answer.thing,), (last.answer.color,), last.answer if keeps else None)


def _write_as_people_do(rng: random.Random, text: str) -> str:
    """With a capital here and there, and now and then in capitals alone."""
    how = rng.random()
    if how < 0.1:
        return text.upper()
    return text[:1].upper() + text[1:].replace(" i ", " I ").replace(" i'", " I'") if how < 0.5 else text


def _free_case(wish: FreeWish) -> Case:
    return Case([("user", wish.text)], wish.things, wish.colors)


def _judge(writer: Writer, cases: list[Case], forms: Tally) -> dict[str, float | None]:
    form, fits, color, kept = Tally(), Tally(), Tally(), Tally()
    for case, text in zip(cases, writer.answer([case.messages for case in cases]), strict=True):
        prompt = parse_prompt(text)
        for tally in (form, forms):
            tally.add(prompt is not None)
        if case.things is not None:
            fits.add(prompt is not None and prompt.thing in case.things)
        if case.colors:
            color.add(prompt is not None and prompt.color in case.colors)
        if case.kept:
            kept.add(prompt is not None and _same_but_color(prompt, case.kept))
    return {name: tally.share() for name, tally in (("form", form), ("fits", fits), ("color", color), ("kept", kept)) if tally.all}


def _same_but_color(prompt: Prompt, before: Prompt) -> bool:
    return (prompt.thing, prompt.size, prompt.style) == (before.thing, before.size, before.style)


def _in_words(figures: dict[str, float | None]) -> str:
    return ", ".join(f"{name} {value}" for name, value in figures.items())


def missed(directory: Path, weights: str, wishes: Path | None = None) -> list[tuple[str, str]]:
    """Free wishes that a model does not fit, with its answers."""
    free = read_free_wishes(wishes) if wishes else read_free_wishes()
    answers = Writer(directory, weights).answer([[("user", wish.text)] for wish in free])
    found = []
    for wish, text in zip(free, answers, strict=True):
        prompt = parse_prompt(text)
        if prompt is None or prompt.thing not in wish.things or (wish.colors and prompt.color not in wish.colors):
            found.append((wish.text, text))
    return found
