"""Training pictures: an emoji of one of three sizes on a background. A scene says all that a picture shows."""

from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from train_emoji.sources import source_file
from train_emoji.things import COLOR_NAMES, COLORS, Thing, is_held_out

SIDE = 128
"""Pixels, each way."""

CELL = 8
"""Pixels of one latent, each way. Things are moved by whole cells, so that the VAE has fewer cases to learn."""

SIZES = {"small": 68, "medium": 96, "big": 118}
"""Pixels of the square that the emoji is scaled into."""

REACH = {"small": 2, "medium": 1, "big": 0}
"""Cells that a thing of this size may be off the middle."""

_GLYPH_SIZE = 109  # the one size of the font's bitmaps
_GRADIENT_AMPLITUDE = 28.0

SHADE_DEVIATION = 5
"""Of each primary of a background's color, 0…255."""

Sprites = list[dict[str, np.ndarray]]
"""For each thing, by size: float32 [side, side, 4], premultiplied RGBA in 0…1."""


@dataclass(frozen=True)
class Scene:
    """What a picture shows. `thing` and `color` are indexes, `dx` and `dy` pixels off the middle."""

    thing: int
    color: int
    gradient: bool
    size: str
    dx: int = 0
    dy: int = 0
    shade: tuple[float, float, float] = (0.0, 0.0, 0.0)  # added to the color, 0…255
    direction: int = 0  # of the gradient, 0…3


def draw_scene(rng: np.random.Generator, thing: int, *, held_out: bool = False) -> Scene:
    """A random scene with this thing; one of the held-out pairs only if `held_out`."""
    while True:
        color = int(rng.integers(len(COLORS)))
        if held_out or not is_held_out(thing, color):
            break
    gradient = bool(rng.random() < 0.3)
    size = str(rng.choice(["medium", "big", "small"], p=[0.6, 0.25, 0.15]))
    dx = dy = 0
    if rng.random() >= 0.5:
        reach = REACH[size]
        dx, dy = (CELL * int(rng.integers(-reach, reach + 1)) for _ in range(2))
    red, green, blue = (float(value) for value in rng.normal(0, SHADE_DEVIATION, 3))
    direction = int(rng.choice(4)) if gradient else 0
    return Scene(thing, color, gradient, size, dx, dy, (red, green, blue), direction)


def render_sprites(things: tuple[Thing, ...], scale: int = 1) -> Sprites:
    """The emoji in all sizes, cropped and centered; slim ones stay slim. `scale`: how many times SIDE pictures have."""
    font = ImageFont.truetype(str(source_file("NotoColorEmoji.ttf")), _GLYPH_SIZE, layout_engine=ImageFont.Layout.BASIC)
    return [_render_sprite(thing.characters, font, scale) for thing in things]


def _render_sprite(characters: str, font: ImageFont.FreeTypeFont, scale: int) -> dict[str, np.ndarray]:
    glyph = Image.new("RGBA", (160, 160), (0, 0, 0, 0))
    ImageDraw.Draw(glyph).text((10, 10), characters, font=font, embedded_color=True)
    glyph = glyph.crop(glyph.getbbox())
    width, height = glyph.size
    side = max(width, height, 110)
    square = Image.new("RGBA", (side, side), (0, 0, 0, 0))
    square.paste(glyph, ((side - width) // 2, (side - height) // 2))
    premultiplied = square.convert("RGBa")
    sprites = {}
    for size, pixels in SIZES.items():
        sprite = (
            np.asarray(premultiplied.resize((pixels * scale, pixels * scale), Image.Resampling.LANCZOS), np.float32)
            / 255
        )
        # Lanczos overshoots: no color may be above its alpha.
        sprite[..., :3] = np.minimum(sprite[..., :3], sprite[..., 3:])
        sprites[size] = sprite
    return sprites


def place_sprite(sprite: np.ndarray, dx: int, dy: int, side: int = SIDE) -> np.ndarray:
    """The sprite on an empty picture, `dx` and `dy` pixels off the middle: float32 [side, side, 4], premultiplied."""
    picture = np.zeros((side, side, 4), np.float32)
    pixels = sprite.shape[0]
    left, top = (side - pixels) // 2 + dx, (side - pixels) // 2 + dy
    x0, y0, x1, y1 = max(left, 0), max(top, 0), min(left + pixels, side), min(top + pixels, side)
    picture[y0:y1, x0:x1] = sprite[y0 - top : y1 - top, x0 - left : x1 - left]
    return picture


def paint(scene: Scene, sprites: Sprites, scale: int = 1) -> np.ndarray:
    """The picture of a scene: float32 [side, side, 3], sRGB in 0…1; `scale` is that of the sprites."""
    side = SIDE * scale
    placed = place_sprite(sprites[scene.thing][scene.size], scene.dx * scale, scene.dy * scale, side)
    return paint_background(scene, side) * (1 - placed[..., 3:]) + placed[..., :3]


def paint_background(scene: Scene, side: int = SIDE) -> np.ndarray:
    """What lies behind the thing: float32 [side, side, 3], sRGB in 0…1."""
    base = np.array(COLORS[COLOR_NAMES[scene.color]], np.float32) + np.array(scene.shade, np.float32)
    slope = np.zeros((side, side), np.float32)
    if scene.gradient:
        ramp = np.linspace(-1, 1, side, dtype=np.float32)
        down, right = np.broadcast_to(ramp[:, None], slope.shape), np.broadcast_to(ramp[None], slope.shape)
        slope = (down, -down, (down + right) / 2, (down - right) / 2)[scene.direction]
    return ((base + slope[..., None] * _GRADIENT_AMPLITUDE).clip(0, 255) / 255).astype(np.float32)


def to_tensor_layout(picture: np.ndarray) -> np.ndarray:
    """From [height, width, 3] in 0…1 to [3, height, width] in -1…1, as the VAE has it."""
    return np.ascontiguousarray(picture.transpose(2, 0, 1)) * 2 - 1
