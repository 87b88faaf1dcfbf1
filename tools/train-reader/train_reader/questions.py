"""Questions about an image and their answers."""

import random
from dataclasses import dataclass

from train_emoji.pictures import Scene
from train_emoji.things import COLOR_NAMES, Thing
from train_writer.things import Prompt, with_article

_GROUPS: dict[str, tuple[int, int]] = {"animal": (0, 66), "plant": (66, 78), "food": (78, 121), "drink": (121, 126), "vehicle": (126, 146)}
"""Things by number in things.txt: from, to before."""
_NOT_OF_THEIR_GROUP = ("teapot",)
KINDS = (*_GROUPS, "face", "object")
"""Kinds of things that the model distinguishes."""

WORDINGS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "describe": (
        (
            "describe the image",
            "describe this picture",
            "describe this",
            "describe what you see",
            "describe the scene in one sentence",
            "what does the image show?",
            "what does this picture show?",
            "what do you see?",
            "what do you see in this image?",
            "what can you see in the picture?",
            "what is in this picture?",
            "what is in the image?",
            "what is shown here?",
            "what is on this picture?",
            "write a caption",
            "write a description of the image",
            "write a prompt for this image",
            "a caption for this image, please",
            "a description, please",
            "a short description",
            "tell me what this shows",
            "tell me what you see",
            "tell me about the picture",
            "say what the picture shows",
            "describe it",
            "which prompt draws this?",
            "which prompt made this picture?",
            "what can be seen here?",
            "what does it look like?",
            "put this image into words",
            "summarize the picture",
            "explain what this shows",
            "explain the image",
            "give me a caption",
            "give a description of this picture",
            "please describe the photo",
            "how would you describe this?",
            "caption the image",
            "caption",
            "description",
            "words for this picture, please",
        ),
        ("what's in the photo?", "caption this", "tell me about this image", "which words describe this picture?"),
    ),
    "what": (
        (
            "what is it?",
            "what is this?",
            "what is that?",
            "what's this?",
            "what's that?",
            "which thing is it?",
            "which thing is this?",
            "name the thing",
            "name this thing",
            "name the object in the picture",
            "what is the thing in the image?",
            "what is the object?",
            "what object is this?",
            "what thing is shown?",
            "what is drawn here?",
            "which thing is drawn?",
            "what am i looking at?",
            "what are we looking at?",
            "tell me what this is",
            "tell me what it is",
            "say what it is",
            "what object does it show?",
            "which emoji is this?",
            "which emoji do you see?",
            "what do you call this?",
            "what is this thing called?",
            "how is this called?",
            "do you know what this is?",
            "can you tell what this is?",
            "could you tell me what it is?",
            "what would you say it is?",
            "what might that be?",
            "recognize the thing",
            "recognize this object",
            "find out what this is",
            "the name of the thing, please",
            "the object?",
        ),
        ("name it", "can you tell me what that is?", "what could this be?", "identify the object"),
    ),
    "color": (
        (
            "which color is the background?",
            "what color is the background?",
            "what colour is the background?",
            "what color is it?",
            "what colour is it?",
            "which colour is it?",
            "which color is it on?",
            "what is the background color?",
            "what is the colour of the background?",
            "what color is behind it?",
            "which colour is behind the thing?",
            "on which color is it?",
            "on what colour is it?",
            "name the color of the background",
            "name the background colour",
            "say the color",
            "which colour do you see behind it?",
            "the background color, please",
            "background color?",
            "color?",
            "tell me the color",
            "tell me the colour of the background",
            "which color is the picture?",
            "what color does the image have?",
            "how is the background colored?",
        ),
        (
            "the color, please",
            "what is the colour?",
            "tell me the background's color",
            "which color does the picture have?",
            "which colour is the background?",
        ),
    ),
    "kind": (
        (
            "what kind of thing is it?",
            "what kind of thing is this?",
            "which kind of thing is this?",
            "which kind is it?",
            "is it an animal, a plant, food or something else?",
            "is this an animal, a vehicle or an object?",
            "what type of thing is that?",
            "what type is it?",
            "which type of object is it?",
            "what category is it?",
            "in which category is this?",
            "into which group does it fall?",
            "what sort of thing is this?",
            "what sort of object is it?",
            "tell me the kind of thing",
            "name the kind of thing",
            "what class of thing is it?",
        ),
        (
            "what sort of thing does the image show?",
            "in which category is it?",
            "which group does it belong to?",
            "what category of thing is this?",
        ),
    ),
    "is kind": (
        (
            "is it {kind}?",
            "is this {kind}?",
            "is that {kind}?",
            "it is {kind}, right?",
            "is it {kind} or not?",
            "is the object {kind}?",
            "is the thing in the picture {kind}?",
            "does it show {kind}?",
            "does this show {kind}?",
            "does the image show {kind}?",
            "does the picture show {kind}?",
            "do you see {kind}?",
            "can you see {kind}?",
            "can {kind} be seen?",
            "is {kind} in the image?",
            "is there {kind}?",
            "is there {kind} in this image?",
            "is {kind} shown here?",
            "would you say it is {kind}?",
            "could this be {kind}?",
            "might it be {kind}?",
            "am i looking at {kind}?",
            "do i see {kind}?",
        ),
        ("is the thing {kind}?", "is there {kind} in the picture?", "would you call it {kind}?"),
    ),
    "is thing": (
        (
            "is it {thing}?",
            "is this {thing}?",
            "is that {thing}?",
            "it is {thing}, right?",
            "is it {thing} or not?",
            "does it show {thing}?",
            "does this show {thing}?",
            "does the image show {thing}?",
            "does the picture show {thing}?",
            "can you see {thing}?",
            "is there {thing}?",
            "is {thing} in the image?",
            "is {thing} shown here?",
            "would you say it is {thing}?",
            "would you call it {thing}?",
            "might this be {thing}?",
            "am i looking at {thing}?",
            "is the thing {thing}?",
        ),
        ("is there {thing} in the picture?", "could it be {thing}?", "do you see {thing}?"),
    ),
    "is color": (
        (
            "is it {color}?",
            "is it on {color}?",
            "is the background {color}?",
            "is the picture {color}?",
            "is the color {color}?",
            "is the background color {color}?",
            "is it {color} behind it?",
            "is it {color} behind the thing?",
            "does it have a {color} background?",
            "does the image have a {color} background?",
            "is there a {color} background?",
            "would you say the background is {color}?",
            "could the color be {color}?",
            "{color}, right?",
        ),
        ("is the colour behind it {color}?", "do you see {color} behind the thing?"),
    ),
    "size": (
        (
            "how big is it?",
            "how big is the thing?",
            "how small is it?",
            "how large is it?",
            "is it big or small?",
            "is it small, medium or big?",
            "what size is it?",
            "what is the size?",
            "what size does it have?",
            "which size is it?",
            "which size does the thing have?",
            "size?",
            "tell me how big it is",
            "name the size",
        ),
        ("is the thing small, medium or big?", "how large is the thing?", "tell me the size"),
    ),
}
"""How users ask, by what they ask for: in training, and kept from it."""

_OPENINGS = (
    "please, ",
    "please ",
    "so, ",
    "hey, ",
    "hello! ",
    "tell me: ",
    "quick question: ",
    "and ",
    "now ",
    "i would like to know: ",
    "look at it: ",
)
_ENDINGS = (" please", " thanks", " thank you", " in a few words")

_NUMBERS = {"is kind": 0.2, "is thing": 0.16, "what": 0.16, "describe": 0.18, "color": 0.12, "is color": 0.08, "kind": 0.05, "size": 0.05}


@dataclass(frozen=True)
class Turn:
    """A question and its answer."""

    family: str
    question: str
    answer: str


def kind_of(thing: int, things: tuple[Thing, ...]) -> str:
    """The kind of a thing, one of `KINDS`."""
    noun = things[thing].nouns[0]
    if noun in _NOT_OF_THEIR_GROUP:
        return "object"
    if noun.endswith(" face") and thing >= _GROUPS["vehicle"][1]:
        return "face"
    return next((kind for kind, (first, end) in _GROUPS.items() if first <= thing < end), "face" if noun.startswith("face ") else "object")


def describe(scene: Scene, things: tuple[Thing, ...]) -> str:
    """The description of a scene, in the form of emoji-sd's prompts."""
    size = None if scene.size == "medium" else scene.size
    return str(Prompt(scene.thing, things[scene.thing].nouns[0], COLOR_NAMES[scene.color], size=size, gradient=scene.gradient))


def ask(scene: Scene, things: tuple[Thing, ...], rng: random.Random, *, held_out: bool = False, family: str | None = None) -> Turn:
    """A question about a scene.

    Args:
        scene: what the image shows.
        things: all that there are.
        rng: decides what is asked and how.
        held_out: only wordings that training does not have, else only those that it has.
        family: what is asked for; default: any.
    """
    family = family or rng.choices([*_NUMBERS], [*_NUMBERS.values()])[0]
    trained, kept = WORDINGS[family]
    wording = rng.choice(kept) if held_out else _vary(rng.choice(trained), rng)
    is_true = rng.random() < 0.5
    noun, color, kind = things[scene.thing].nouns[0], COLOR_NAMES[scene.color], kind_of(scene.thing, things)
    if family == "is kind":
        asked = kind if is_true else rng.choice([other for other in KINDS if other != kind])
        return Turn(family, wording.format(kind=_named(asked)), "yes" if is_true else "no")
    if family == "is thing":
        other = rng.choice([at for at in range(len(things)) if at != scene.thing])
        asked = rng.choice(things[scene.thing].nouns) if is_true else things[other].nouns[0]
        return Turn(family, wording.format(thing=with_article(asked)), "yes" if is_true else "no")
    if family == "is color":
        asked = color if is_true else rng.choice([other for other in COLOR_NAMES if other != color])
        return Turn(family, wording.format(color=asked), "yes" if is_true else "no")
    answers = {"describe": describe(scene, things), "what": with_article(noun), "color": color, "kind": _named(kind), "size": scene.size}
    return Turn(family, wording, answers[family])


def _vary(wording: str, rng: random.Random) -> str:
    """The wording, perhaps more polite or without its question mark."""
    if rng.random() < 0.2:
        wording = wording.removesuffix("?")
    if rng.random() < 0.2:
        wording = rng.choice(_OPENINGS) + wording
    return wording + rng.choice(_ENDINGS) if rng.random() < 0.1 else wording


def _named(kind: str) -> str:
    return kind if kind == "food" else with_article(kind)
