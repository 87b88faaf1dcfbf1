"""Conversations: a wish, its answer, and what people say next."""

import random
from dataclasses import dataclass, replace

from train_writer.picking import TRAINING, Split, alike
from train_writer.things import Prompt, all_nouns, with_article
from train_writer.wishes import Wish, answer_wish, make_wish, name_thing, pick_color, strip_end

FOLLOW_UPS = {"color": 50, "thing": 14, "bigger": 7, "smaller": 7, "other": 10, "color and size": 4, "wish": 8}
"""What people say next, and how often."""
_TURNS = (50, 32, 12, 6)
"""How often a conversation has one turn, two, …"""
_REPEATED = ("category", "adjective", "doing", "place", "keyword")
"""Families of wishes that also replace an earlier one."""


@dataclass(frozen=True)
class Turn:
    """What somebody says, and the answer."""

    kind: str
    """One of FOLLOW_UPS, or "first"."""
    text: str
    wish: Wish
    """What the answer has to fit: of the latest turn that named things."""
    answer: Prompt


@dataclass(frozen=True)
class Chat:
    """A conversation."""

    turns: tuple[Turn, ...]
    system: str | None = None

    def messages(self, with_last_answer: bool = True) -> list[tuple[str, str]]:
        """(role, text) of every message."""
        found = [("system", self.system)] if self.system else []
        for turn in self.turns:
            found += [("user", turn.text), ("assistant", str(turn.answer))]
        return found if with_last_answer else found[:-1]


def make_chat(
    rng: random.Random,
    split: Split = TRAINING,
    family: str | None = None,
    follow_ups: list[str] | None = None,
    first: Split | None = None,
) -> Chat:
    """A random conversation.

    Args:
        rng: the source of what is random.
        split: what its turns are made of.
        family: of the first wish.
        follow_ups: the kinds of the turns after it.
        first: what the first wish is made of, if that is another.
    """
    wish = make_wish(rng, first or split, family)
    turns = [Turn("first", _mistype(rng, wish.text, split), wish, answer_wish(rng, wish))]
    if follow_ups is None:
        count = rng.choices(range(len(_TURNS)), _TURNS)[0]
        follow_ups = rng.choices(list(FOLLOW_UPS), list(FOLLOW_UPS.values()), k=count)
    for kind in follow_ups:
        turns.append(_follow(rng, split, kind, turns[-1]))
    system = split.frame(rng, "system") if rng.random() < 0.06 else None
    return Chat(tuple(turns), system)


def _follow(rng: random.Random, split: Split, kind: str, last: Turn) -> Turn:
    wish, answer = last.wish, last.answer
    word, color = pick_color(rng)
    if kind == "color":
        text = split.frame(rng, "then color").format(q=word, aq=with_article(word))
        answer = replace(answer, color=color)
    elif kind == "thing":
        thing = rng.randrange(len(all_nouns()))
        noun = name_thing(rng, thing)
        text = split.frame(rng, "then thing").format(a=with_article(noun))
        wish = Wish(text, kind, (thing,), noun)
        answer = replace(answer, thing=thing, noun=noun, style=None)
        if rng.random() < 0.2:
            text, answer = f"{strip_end(text)} {rng.choice(('in', 'on'))} {word}", replace(answer, color=color)
    elif kind in ("bigger", "smaller"):
        text = split.frame(rng, f"then {kind}")
        answer = replace(answer, size=_size_said(text, kind))
    elif kind == "color and size":
        size = rng.choice(("big", "small", "bigger", "smaller", "tiny", "huge"))
        text = split.frame(rng, "then color and size").format(s=size, q=word)
        answer = replace(answer, color=color, size={"bigger": "big", "smaller": "small"}.get(size, size))
    elif kind == "other":
        text = split.frame(rng, "then other")
        rest = tuple(thing for thing in wish.things if thing != answer.thing)
        wish = replace(wish, things=rest or alike(answer.thing), noun=None)
        answer = replace(answer_wish(rng, wish), color=answer.color, size=None, style=None, gradient=answer.gradient)
    else:
        family = rng.choice(_REPEATED)
        wish = make_wish(rng, split, family)
        while wish.gradient or wish.color:
            wish = make_wish(rng, split, family)
        lead = rng.choice(("now {x}", "{x} instead", "rather {x}", "no, {x}", "i would prefer {x}", "and {x}?", "{x}"))
        text = lead.format(x=strip_end(wish.text))
        answer = replace(answer_wish(rng, wish), color=answer.color, size=None, style=None, gradient=answer.gradient)
    return Turn(kind, _mistype(rng, text, split), wish, answer)


def _size_said(text: str, kind: str) -> str:
    if kind == "bigger":
        return "large" if "large" in text else "big"
    return "little" if "little" in text else "small"


def _mistype(rng: random.Random, text: str, split: Split) -> str:
    """Ends of sentences; in training a typing error now and then."""
    if text[-1].isalnum() and rng.random() < 0.25:
        text += rng.choice(("." * rng.randint(1, 3), "!", "!"))
    if split == TRAINING and rng.random() < 0.06 and len(text) > 12:
        at = rng.randrange(1, len(text) - 2)
        wrong = rng.choice((text[at + 1 :], text[at + 1] + text[at] + text[at + 2 :], text[at] + text[at:]))
        text = text[:at] + wrong
    return text
