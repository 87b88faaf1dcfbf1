"""Training images: scenes of train-emoji with what images go through before somebody asks about them."""

import io

import numpy as np
from PIL import Image, ImageFilter
from train_emoji.pictures import SIDE, Scene, Sprites, draw_scene, paint

MEAN = DEVIATION = 0.5
"""Mean and deviation of every channel, as in preprocessor_config.json."""

READ_SIDE = 96
"""Pixels of an image as the model reads it, each way."""


def draw_image(rng: np.random.Generator, thing: int, sprites: Sprites, *, held_out: bool = False) -> tuple[Scene, np.ndarray]:
    """A random scene and its image: uint8 [SIDE, SIDE, 3]. Half of them are shifted, blurred, noisy or compressed."""
    scene = draw_scene(rng, thing, held_out=held_out)
    pixels = (paint(scene, sprites) * 255).round().astype(np.uint8)
    return scene, change_image(pixels, rng) if rng.random() < 0.5 else pixels


def change_image(pixels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The image shifted by some pixels, perhaps blurred, noisy and compressed."""
    down, right = (int(value) for value in rng.integers(-5, 6, 2))
    padded = np.pad(pixels, ((5, 5), (5, 5), (0, 0)), mode="edge")
    image = Image.fromarray(padded[5 + down : 5 + down + SIDE, 5 + right : 5 + right + SIDE])
    if rng.random() < 0.4:
        image = image.filter(ImageFilter.GaussianBlur(float(rng.uniform(0.3, 1.2))))
    if rng.random() < 0.4:
        stored = io.BytesIO()
        image.save(stored, "JPEG", quality=int(rng.integers(40, 95)))
        image = Image.open(stored)
    changed = np.asarray(image, np.float32)
    if rng.random() < 0.5:
        changed = changed + rng.normal(0, rng.uniform(1, 8), changed.shape)
    return changed.round().clip(0, 255).astype(np.uint8)


def to_pixel_values(images: np.ndarray) -> np.ndarray:
    """uint8 [images, height, width, 3] as the vision encoder reads it: float32 [images, 3, READ_SIDE, READ_SIDE] in -1…1.

    As CLIPImageProcessor of transformers does it, for square images.
    """
    size = (READ_SIDE, READ_SIDE)
    resized = np.stack([np.asarray(Image.fromarray(image).resize(size, Image.Resampling.BICUBIC)) for image in images])
    return ((resized.astype(np.float32) / 255 - MEAN) / DEVIATION).transpose(0, 3, 1, 2)
