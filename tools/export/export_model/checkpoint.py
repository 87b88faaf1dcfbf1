"""What a checkpoint is made of, and whether all of it can be exported."""

import json
from dataclasses import dataclass
from pathlib import Path

_CLIP = {"CLIPTextModel"}
_PROJECTED = {"CLIPTextModelWithProjection"}
_CLIP_TOKENIZER = {"CLIPTokenizer", "CLIPTokenizerFast"}
_STABLE_DIFFUSION = {
    "text_encoder": _CLIP,
    "tokenizer": _CLIP_TOKENIZER,
    "unet": {"UNet2DConditionModel"},
    "vae": {"AutoencoderKL"},
}

PIPELINES: dict[str, dict[str, set[str]]] = {
    "StableDiffusionPipeline": _STABLE_DIFFUSION,
    "LatentConsistencyModelPipeline": _STABLE_DIFFUSION,
    "StableDiffusionXLPipeline": {
        **_STABLE_DIFFUSION,
        "text_encoder_2": _PROJECTED,
        "tokenizer_2": _CLIP_TOKENIZER,
    },
    "StableDiffusion3Pipeline": {
        "text_encoder": _PROJECTED,
        "text_encoder_2": _PROJECTED,
        "text_encoder_3": {"T5EncoderModel"},
        "tokenizer": _CLIP_TOKENIZER,
        "tokenizer_2": _CLIP_TOKENIZER,
        "tokenizer_3": {"T5Tokenizer", "T5TokenizerFast"},
        "transformer": {"SD3Transformer2DModel"},
        "vae": {"AutoencoderKL"},
    },
    "CogView4Pipeline": {
        "text_encoder": {"GlmModel"},
        "tokenizer": {"PreTrainedTokenizerFast"},
        "transformer": {"CogView4Transformer2DModel"},
        "vae": {"AutoencoderKL"},
    },
}
"""The components of each pipeline that can be exported, with the classes they may have."""

_OPTIONAL = {"StableDiffusion3Pipeline": ("text_encoder_3", "tokenizer_3")}
"""Components that a pipeline may come without, all of them or none."""

UNUSED = ("safety_checker", "feature_extractor", "image_encoder")
"""Components that no image from a prompt needs; Darkroom has nothing that reads them."""


@dataclass(frozen=True)
class Checkpoint:
    """A directory as diffusers' `save_pretrained` writes it."""

    directory: Path
    pipeline: str
    """Its class."""
    components: tuple[str, ...]
    """All that are exported or copied, the scheduler too."""
    unused: tuple[str, ...]
    """Those that are there and left out."""

    @property
    def graphs(self) -> tuple[str, ...]:
        """The components that become graphs."""
        return tuple(name for name in self.components if not name.startswith(("tokenizer", "scheduler")))


def read_checkpoint(directory: Path) -> Checkpoint:
    """Reads what the checkpoint is.

    Raises:
        SystemExit: naming every component that cannot be exported, or what is missing.
    """
    index = _read_json(directory / "model_index.json")
    pipeline = index.get("_class_name")
    if pipeline not in PIPELINES:
        raise SystemExit(f"{directory}: _class_name is {pipeline!r}, expected one of {', '.join(PIPELINES)}")
    there = {name: value[1] for name, value in index.items() if isinstance(value, list) and value[1] is not None}
    expected = PIPELINES[pipeline]
    optional = _OPTIONAL.get(pipeline, ())
    if there.keys().isdisjoint(optional):
        expected = {name: classes for name, classes in expected.items() if name not in optional}
    problems = [
        f"{name} is {there[name]}, expected {' or '.join(sorted(classes))}" if name in there else f"{name} is missing"
        for name, classes in expected.items()
        if there.get(name) not in classes
    ]
    problems += [] if "scheduler" in there else ["scheduler is missing"]
    known = [*expected, "scheduler", *UNUSED]
    problems += [f"{name} ({kind}) cannot be exported" for name, kind in there.items() if name not in known]
    components = tuple(name for name in there if name not in UNUSED)
    problems += [f"{name}/ is missing" for name in components if not (directory / name).is_dir()]
    if problems:
        raise SystemExit(f"{directory}: {pipeline}: " + "; ".join(problems))
    return Checkpoint(directory, pipeline, components, tuple(name for name in there if name in UNUSED))


def _read_json(file: Path) -> dict:
    try:
        found = json.loads(file.read_text())
    except FileNotFoundError:
        raise SystemExit(f"{file} is missing: this is no directory of a diffusers checkpoint") from None
    except ValueError as error:
        raise SystemExit(f"{file} is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise SystemExit(f"{file} holds no object")
    return found
