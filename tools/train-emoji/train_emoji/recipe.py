"""All numbers of a run that are worth changing. A run's folder keeps the recipe it was begun with."""

import json
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path


@dataclass(frozen=True)
class Recipe:
    """The defaults make the embedded model. Steps are of the optimizer, batches are pictures."""

    seed: int = 0
    things: int = 218
    """The first so many of things.txt."""
    tokenizer_captions: int = 40_000

    text_width: int = 128
    text_layers: int = 2
    text_steps: int = 150
    text_batch: int = 96
    text_rate: float = 2e-3

    vae_channels: tuple[int, ...] = (16, 32, 64, 96)
    crop_steps: int = 3400
    """Of the VAE on crops of 64 pixels, before `vae_steps` on whole pictures."""
    crop_batch: int = 16
    vae_steps: int = 2300
    vae_batch: int = 4
    vae_rate: float = 2.5e-3

    pictures_per_thing: int = 100
    """Whose latents the UNet is trained on."""

    unet_channels: tuple[int, ...] = (32, 96, 192)
    unet_steps: int = 4200
    unet_batch: int = 64
    unet_rate: float = 3.6e-3

    decoder_steps: int = 1200
    """Of fine-tuning the decoder alone, at the end."""
    decoder_batch: int = 4
    decoder_rate: float = 1e-3


PRESETS = {
    "emoji": Recipe(),
    # For tests: goes all the way in a minute or two on one core, and draws nothing that could be recognized.
    "tiny": Recipe(
        things=6,
        tokenizer_captions=300,
        text_width=32,
        text_layers=1,
        text_steps=12,
        text_batch=8,
        vae_channels=(8, 8, 16, 16),
        crop_steps=12,
        crop_batch=4,
        vae_steps=8,
        vae_batch=2,
        pictures_per_thing=4,
        unet_channels=(16, 16, 32),
        unet_steps=12,
        unet_batch=4,
        decoder_steps=8,
        decoder_batch=2,
    ),
}


def change_recipe(recipe: Recipe, changes: list[str]) -> Recipe:
    """The recipe with changes such as "unet_channels=64,128,256".

    Raises:
        SystemExit: saying which change is none.
    """
    values: dict[str, int | float | tuple[int, ...]] = {}
    for change in changes:
        name, _, text = change.partition("=")
        if name not in {field.name for field in fields(Recipe)}:
            raise SystemExit(
                f"--set {change}: there is no {name!r}; expected {[field.name for field in fields(Recipe)]}"
            )
        kind = type(getattr(recipe, name))
        try:
            values[name] = tuple(int(part) for part in text.split(",")) if kind is tuple else kind(text)
        except ValueError as error:
            raise SystemExit(f"--set {change}: {error}; expected something like {getattr(recipe, name)}") from None
    return replace(recipe, **values)


def keep_recipe(out: Path, recipe: Recipe) -> None:
    """Writes the recipe into a new run's folder, or checks that the run there was begun with the same one.

    Raises:
        SystemExit: saying what differs.
    """
    path = out / "recipe.json"
    wanted = json.loads(json.dumps(asdict(recipe)))
    if not path.exists():
        out.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(wanted, indent=2) + "\n")
        return
    kept = json.loads(path.read_text())
    names = [name for name in {**kept, **wanted} if kept.get(name) != wanted.get(name)]
    if names:
        listed = ", ".join(f"{name} {kept.get(name)} (asked for: {wanted.get(name)})" for name in names)
        raise SystemExit(f"{out} was begun with another recipe: {listed}. Ask for the same, or take another folder.")
