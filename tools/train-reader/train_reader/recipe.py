"""All numbers of a run that are worth changing."""

from dataclasses import dataclass, field

from train_writer.model import Shape

from train_reader.model import VisionShape


@dataclass(frozen=True)
class Recipe:
    """The defaults make the embedded model. Steps are of the optimizer, rows are images with five questions each."""

    seed: int = 0
    vocabulary: int = 1024
    context: int = 256
    rows: int = 32
    rate: float = 4e-3
    steps: int = 2400
    fall_steps: int = 1100
    """At the end, in which the rate falls to nothing."""
    vision: VisionShape = field(default_factory=VisionShape)
    text: Shape = field(default_factory=lambda: Shape(vocabulary=1024, layers=2))


PRESETS = {
    "reader": Recipe(),
    # For tests: goes all the way in a minute, and recognizes nothing.
    "tiny": Recipe(
        rows=2,
        steps=4,
        fall_steps=2,
        vision=VisionShape(width=32, layers=1, heads=1, hidden=32),
        text=Shape(vocabulary=1024, width=64, layers=1, heads=2, key_heads=1, hidden=64),
    ),
}
