"""All numbers of a run that are worth changing. A run's folder keeps the recipe it was begun with."""

import json
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

from train_writer.model import Shape


@dataclass(frozen=True)
class Recipe:
    """The defaults make the embedded models. Steps are of the optimizer, batches are conversations."""

    seed: int = 0
    vocabulary: int = 6144
    tokenizer_chats: int = 30_000
    width: int = 192
    layers: int = 4
    hidden: int = 384
    context: int = 256
    """Tokens that a model reads and writes together."""

    batch: int = 96
    rate: float = 4e-3
    fall_steps: int = 1500
    """At the end of a training, in which the rate falls to nothing."""
    base_steps: int = 300
    """Of what both models begin as: a writer, token by token."""
    writer_steps: int = 5000
    diffusion_steps: int = 6000
    block: int = 8
    """Tokens that block diffusion writes together."""
    confidence: float = 0.9
    """From which on it commits more than one of them at once."""

    evaluated: int = 400
    """Wishes of each generated hold-out."""

    def shape(self) -> Shape:
        """Of both networks."""
        return Shape(vocabulary=self.vocabulary, width=self.width, layers=self.layers, heads=self.width // 32, hidden=self.hidden)


PRESETS = {
    "writer": Recipe(),
    # For tests: goes all the way in a minute, and writes nothing sensible.
    "tiny": Recipe(
        vocabulary=1024,
        tokenizer_chats=300,
        width=192,
        layers=1,
        hidden=64,
        batch=8,
        fall_steps=3,
        base_steps=6,
        writer_steps=6,
        diffusion_steps=6,
        evaluated=8,
    ),
}


def change_recipe(recipe: Recipe, changes: list[str]) -> Recipe:
    """A recipe with some of its numbers changed.

    Args:
        recipe: what to change.
        changes: `name=value` each.

    Raises:
        SystemExit: saying which names and values there could be.
    """
    values = {}
    for change in changes:
        name, _, text = change.partition("=")
        if name not in {field.name for field in fields(Recipe)}:
            raise SystemExit(f"--set {change}: no such name; expected one of {', '.join(field.name for field in fields(Recipe))}")
        kind = type(getattr(recipe, name))
        try:
            values[name] = kind(text)
        except ValueError as error:
            raise SystemExit(f"--set {change}: {error}; expected something like {getattr(recipe, name)}") from None
    return replace(recipe, **values)


def keep_recipe(out: Path, recipe: Recipe) -> None:
    """Writes the recipe into a new run's folder, or checks that the run there was begun with the same one.

    Raises:
        SystemExit: saying what differs.
    """
    path = out / "recipe.json"
    wanted = asdict(recipe)
    if not path.exists():
        out.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(wanted, indent=2) + "\n")
        return
    kept = json.loads(path.read_text())
    names = [name for name in {**kept, **wanted} if kept.get(name) != wanted.get(name)]
    if names:
        listed = ", ".join(f"{name} {kept.get(name)} (asked for: {wanted.get(name)})" for name in names)
        raise SystemExit(f"{out} was begun with another recipe: {listed}. Ask for the same, or take another folder.")
