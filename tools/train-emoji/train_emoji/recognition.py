"""Tells what a picture shows: its background's color and the nearest of all things. It knows no prompt."""

import numpy as np

from train_emoji.pictures import CELL, REACH, SIDE, Sprites, place_sprite
from train_emoji.things import COLORS

_SMALL = 32
_EDGE = 6
_CORNER = 8


class Recognizer:
    """Compares pictures, at 32 × 32 pixels, with each thing in each size and place of the training pictures.

    The nearest one says how recognizable a thing is, not how fine its details are.
    """

    def __init__(self, sprites: Sprites) -> None:
        placed: list[np.ndarray] = []
        owners: list[int] = []
        for thing, sizes in enumerate(sprites):
            for size, reach in REACH.items():
                offsets = [CELL * cells for cells in range(-reach, reach + 1)]
                placed += [_shrink(place_sprite(sizes[size], dx, dy)) for dx in offsets for dy in offsets]
                owners += [thing] * len(offsets) ** 2
        references = np.stack(placed)
        self._colors, self._behind = references[..., :3], 1 - references[..., 3:]
        self._owners = np.array(owners)
        self._things = len(sprites)

    def find_thing(self, picture: np.ndarray) -> int:
        """The index of the thing that a picture [SIDE, SIDE, 3] in 0…1 shows.

        Things are compared on the picture's own background: what its corners say, and what lies between them.
        """
        difference = self._colors + self._behind * _guess_background(picture) - _shrink(picture)
        errors = np.square(difference).mean((1, 2, 3))
        least = np.full(self._things, np.inf)
        np.minimum.at(least, self._owners, errors)
        return int(least.argmin())


def find_color(picture: np.ndarray) -> int:
    """The index of the color nearest to the median of a picture's edge."""
    edges = (picture[:_EDGE], picture[-_EDGE:], picture[:, :_EDGE], picture[:, -_EDGE:])
    median = np.median(np.concatenate([edge.reshape(-1, 3) for edge in edges]), 0) * 255
    return int(np.linalg.norm(np.array([*COLORS.values()]) - median, axis=1).argmin())


def _guess_background(picture: np.ndarray) -> np.ndarray:
    near, far = slice(None, _CORNER), slice(-_CORNER, None)
    corners = [(near, near), (near, far), (far, near), (far, far)]
    top_left, top_right, bottom_left, bottom_right = (np.median(picture[at].reshape(-1, 3), 0) for at in corners)
    down = np.linspace(0, 1, _SMALL, dtype=np.float32)[:, None, None]
    right = np.linspace(0, 1, _SMALL, dtype=np.float32)[None, :, None]
    top = (1 - right) * top_left + right * top_right
    bottom = (1 - right) * bottom_left + right * bottom_right
    return ((1 - down) * top + down * bottom).astype(np.float32)


def _shrink(picture: np.ndarray) -> np.ndarray:
    block = SIDE // _SMALL
    return picture.reshape(_SMALL, block, _SMALL, block, -1).mean((1, 3)).astype(np.float32)
