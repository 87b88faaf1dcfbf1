"""The four ONNX graphs of a Stable Diffusion, with the names and axes that Optimum gives them, and their check."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnxruntime
import torch
from diffusers.models.attention_processor import AttnProcessor
from torch import nn

from train_emoji.models import Networks

_OPSET = 17
_LARGEST_DIFFERENCE = 1e-3


@dataclass(frozen=True)
class Graph:
    """A module as an ONNX graph: named inputs with the axes that may change, named outputs."""

    name: str
    module: nn.Module
    inputs: dict[str, tuple[torch.Tensor, dict[int, str]]]
    outputs: dict[str, dict[int, str]]
    check: dict[str, torch.Tensor]
    """Other inputs, of another size, with which graph and module are compared."""


def export_graph(graph: Graph, path: Path) -> float:
    """Writes the graph and runs it once.

    Returns:
        The largest difference to what torch computes.

    Raises:
        SystemExit: the difference is too large.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    module = graph.module.eval()
    axes = {name: axes for name, (_, axes) in graph.inputs.items()} | graph.outputs
    torch.onnx.export(
        module,
        tuple(example for example, _ in graph.inputs.values()),
        str(path),
        input_names=[*graph.inputs],
        output_names=[*graph.outputs],
        dynamic_axes=axes,
        opset_version=_OPSET,
        # The TorchScript exporter: its graphs are those that were measured, and it needs no further package.
        dynamo=False,
    )
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    found = session.run(None, {name: value.numpy() for name, value in graph.check.items()})
    with torch.no_grad():
        expected = module(**graph.check)
    expected = expected if isinstance(expected, tuple) else (expected,)
    difference = max(float(np.abs(a - b.numpy()).max()) for a, b in zip(found, expected, strict=True))
    if not difference < _LARGEST_DIFFERENCE:
        raise SystemExit(f"{path}: ONNX Runtime and torch differ by {difference}")
    return difference


def list_graphs(networks: Networks) -> list[Graph]:
    """text_encoder, unet, vae_decoder and vae_encoder."""
    text_encoder, unet, vae = networks
    text_encoder.set_attn_implementation("eager")
    unet.set_attn_processor(AttnProcessor())  # matrix products and softmax in place of one operator: a smaller graph
    channels, width = unet.config.in_channels, unet.config.cross_attention_dim
    tokens = text_encoder.config.vocab_size
    generator = torch.Generator().manual_seed(0)

    def noise(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator)

    def ids(*shape: int) -> torch.Tensor:
        return torch.randint(tokens, shape, generator=generator)

    text_axes = {0: "batch_size", 1: "sequence_length"}
    latent_axes = {0: "batch_size", 2: "height_latent", 3: "width_latent"}
    picture_axes = {0: "batch_size", 2: "height", 3: "width"}
    return [
        Graph(
            "text_encoder",
            _TextEncoder(text_encoder),
            {"input_ids": (ids(2, 77), text_axes)},
            {"last_hidden_state": text_axes, "pooler_output": {0: "batch_size"}},
            {"input_ids": ids(3, 40)},
        ),
        Graph(
            "unet",
            _Unet(unet),
            {
                "sample": (noise(2, channels, 16, 16), picture_axes),
                "timestep": (torch.tensor([10, 500]), {0: "steps"}),
                "encoder_hidden_states": (noise(2, 77, width), text_axes),
            },
            {"out_sample": picture_axes},
            {
                "sample": noise(3, channels, 12, 20),
                "timestep": torch.tensor([1, 400, 999]),
                "encoder_hidden_states": noise(3, 77, width),
            },
        ),
        Graph(
            "vae_decoder",
            _Decoder(vae),
            {"latent_sample": (noise(2, channels, 16, 16), latent_axes)},
            {"sample": picture_axes},
            {"latent_sample": noise(3, channels, 12, 20)},
        ),
        Graph(
            "vae_encoder",
            _Encoder(vae),
            {"sample": (noise(2, 3, 128, 128), picture_axes)},
            {"latent_parameters": latent_axes},
            {"sample": noise(3, 3, 96, 160)},
        ),
    ]


class _Wrapped(nn.Module):
    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module


class _TextEncoder(_Wrapped):
    def forward(self, input_ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        output = self.module(input_ids=input_ids.long(), return_dict=True)
        return output.last_hidden_state, output.pooler_output


class _Unet(_Wrapped):
    def forward(
        self, sample: torch.Tensor, timestep: torch.Tensor, encoder_hidden_states: torch.Tensor
    ) -> torch.Tensor:
        return self.module(sample, timestep, encoder_hidden_states, return_dict=False)[0]


class _Decoder(_Wrapped):
    def forward(self, latent_sample: torch.Tensor) -> torch.Tensor:
        return self.module.decode(latent_sample, return_dict=False)[0]


class _Encoder(_Wrapped):
    """Mean and logarithm of the variance, one after the other along the channels."""

    def forward(self, sample: torch.Tensor) -> torch.Tensor:
        return self.module.quant_conv(self.module.encoder(sample))
