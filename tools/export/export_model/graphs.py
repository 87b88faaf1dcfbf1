"""The graphs of a pipeline, by Optimum's exporter, with one timestep for each row."""

import gc
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnxruntime
import torch
from diffusers import DiffusionPipeline
from diffusers.utils import logging
from optimum.exporters.onnx import OnnxConfig, export
from optimum.exporters.onnx.model_configs import SD3TransformerOnnxConfig, UNetOnnxConfig
from optimum.exporters.utils import get_diffusion_models_for_export
from torch import nn

from export_model.checkpoint import UNUSED, Checkpoint
from export_model.cogview4 import list_cogview4_models
from export_model.int8 import make_readable
from export_model.layout import VAE_PARTS

_OPSET = 18
_LARGEST_DIFFERENCE = 1e-3
"""Of the ONNX file to torch, of the largest number there is; in fp32."""
_TRACED_SIDE, _CHECKED_SIDE = 16, 24
"""Latents of a model are traced with the one and compared with the other."""

DTYPES = {"fp32": ("model.onnx", torch.float32), "fp16": ("model_fp16.onnx", torch.float16)}


class _PerRow:
    """Optimum gives all rows one timestep, in the dtype of the weights: fp16 has no 951.4."""

    @property
    def inputs(self) -> dict[str, dict[int, str]]:
        return {**super().inputs, "timestep": {0: "batch_size"}}

    def generate_dummy_inputs(self, framework: str = "pt", **kwargs: int) -> dict[str, torch.Tensor]:
        inputs = super().generate_dummy_inputs(framework=framework, **kwargs)
        rows = next(value.shape[0] for name, value in inputs.items() if name in ("sample", "hidden_states"))
        return {**inputs, "timestep": torch.linspace(1, 950.5, rows)}


class _UNet(_PerRow, UNetOnnxConfig):
    pass


class _SD3Transformer(_PerRow, SD3TransformerOnnxConfig):
    pass


_DENOISERS = {"unet": _UNet, "transformer": _SD3Transformer}


class _Small:
    """Inputs of a graph, cut to few latents: SDXL's own size takes minutes and ten gigabytes to trace."""

    def __init__(self, config: OnnxConfig, side: int, rows: int) -> None:
        self._generate, self._side, self._rows = config.generate_dummy_inputs, side, rows

    def __call__(self, framework: str = "pt", **_: int) -> dict:
        shapes = {"batch_size": self._rows, "sequence_length": 16 * (self._rows + 1)}
        inputs = _cut(self._generate(framework="pt", **shapes), self._side)
        return inputs if framework == "pt" else {name: value.numpy() for name, value in _flatten(inputs)}


@dataclass(frozen=True)
class Exported:
    """A graph's file."""

    part: str
    file: Path


def export_graphs(checkpoint: Checkpoint, target: Path, dtype: str, variant: str | None) -> Iterator[Exported]:
    """Writes the graphs one after the other, each into its folder in `target`.

    Raises:
        SystemExit: ONNX Runtime and torch differ, or the weights cannot be read.
    """
    logging.disable_progress_bar()
    name, torch_dtype = DTYPES[dtype]
    try:
        pipeline = DiffusionPipeline.from_pretrained(
            checkpoint.directory,
            torch_dtype=torch_dtype,
            variant=variant,
            local_files_only=True,
            **dict.fromkeys([name for name in UNUSED if name in checkpoint.unused]),
        )
    except (OSError, ValueError) as error:
        raise SystemExit(f"{checkpoint.directory}: {error}") from error
    upcast = dtype == "fp16" and checkpoint.pipeline == "StableDiffusionXLPipeline" and pipeline.vae.config.force_upcast
    if checkpoint.pipeline == "CogView4Pipeline":
        models = list_cogview4_models(pipeline, dtype)
    else:
        models = get_diffusion_models_for_export(pipeline, float_dtype=dtype)
        for part, kind in _DENOISERS.items():
            if part in models:
                model, config = models[part]
                models[part] = model, kind(model.config, task=config.task, float_dtype=dtype)
    del pipeline
    for part in list(models):
        model, config = models.pop(part)
        if part in VAE_PARTS and upcast:
            print(f"{part}: no fp16, which it overflows: its config.json says force_upcast", flush=True)
            continue
        file = target / part / name
        _export(model, config, file, dtype)
        del model
        gc.collect()
        yield Exported(part, file)


def _export(model: nn.Module, config: OnnxConfig, file: Path, dtype: str) -> None:
    generate = config.generate_dummy_inputs
    config.generate_dummy_inputs = _Small(config, _TRACED_SIDE, 2)
    with warnings.catch_warnings():
        # Tracing warns of each branch on a shape; other shapes are compared below.
        warnings.simplefilter("ignore")
        export(model, config, file, opset=_OPSET, dtype=dtype, disable_dynamic_axes_fix=True)
    make_readable(file)
    config.generate_dummy_inputs = generate
    if dtype == "fp32":
        _compare(model, config, file)


def _compare(model: nn.Module, config: OnnxConfig, file: Path) -> None:
    """With another number of rows, another size and texts of another length than those that were traced."""
    inputs = _Small(config, _CHECKED_SIDE, 3)()
    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    flat = {name: value.numpy() for name, value in _flatten(inputs)}
    found = dict(zip(names, session.run(names, flat), strict=True))
    with torch.no_grad():
        outputs = model(**inputs)
    for name, key in _torch_names(config, names).items():
        expected = _pick(outputs, key).numpy()
        difference = float(np.abs(found[name] - expected).max() / np.abs(expected).max())
        if not difference < _LARGEST_DIFFERENCE:
            raise SystemExit(f"{file}: {name} differs from torch's by {difference:.1e} of its largest number")


def _torch_names(config: OnnxConfig, names: list[str]) -> dict[str, str]:
    renamed = {onnx_name: torch_name for torch_name, onnx_name in config.torch_to_onnx_output_map.items()}
    return {name: renamed.get(name, name) for name in names}


def _pick(outputs: dict, key: str) -> torch.Tensor:
    if key in outputs:
        return outputs[key]
    name, *index = key.split(".")
    return outputs[name][int(index[0])] if index else outputs[name]


def _flatten(inputs: dict) -> Iterator[tuple[str, torch.Tensor]]:
    for name, value in inputs.items():
        if isinstance(value, dict):
            yield from _flatten(value)
        else:
            yield name, value


def _cut(inputs: dict, side: int) -> dict:
    cut = {}
    for name, value in inputs.items():
        if isinstance(value, dict):
            cut[name] = _cut(value, side)
        elif value.ndim == 4:
            # Repeated first, for models whose own size is smaller.
            cut[name] = value.repeat(1, 1, 4, 4)[:, :, :side, : side + 8]
        else:
            cut[name] = value
    return cut
