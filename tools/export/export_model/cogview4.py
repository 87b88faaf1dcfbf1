"""What Optimum lacks for CogView4: its GLM text encoder and its transformer."""

from unittest import mock

import torch
from diffusers import DiffusionPipeline
from diffusers.models.attention_processor import Attention
from diffusers.models.embeddings import apply_rotary_emb
from optimum.exporters.onnx import OnnxConfig
from optimum.exporters.onnx.model_configs import VaeDecoderOnnxConfig
from optimum.utils import NormalizedConfig
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

_TASK = "feature-extraction"


class _Config(OnnxConfig):
    NORMALIZED_CONFIG_CLASS = NormalizedConfig

    def _dtype(self) -> torch.dtype:
        return torch.float16 if self.float_dtype == "fp16" else torch.float32


class _Glm(_Config):
    """One output, named as Optimum names hidden states: nothing reads the others, nor the last layer."""

    @property
    def inputs(self) -> dict[str, dict[int, str]]:
        return {"input_ids": {0: "batch_size", 1: "sequence_length"}}

    @property
    def outputs(self) -> dict[str, dict[int, str]]:
        return {_hidden_state(self._config): {0: "batch_size", 1: "sequence_length"}}

    def generate_dummy_inputs(
        self, framework: str = "pt", *, batch_size: int = 2, sequence_length: int = 16, **_: int
    ) -> dict[str, torch.Tensor]:
        generator = torch.Generator().manual_seed(0)
        return {"input_ids": torch.randint(self._config.vocab_size, (batch_size, sequence_length), generator=generator)}


class _Transformer(_Config):
    """Each row has its own timestep and sizes."""

    @property
    def inputs(self) -> dict[str, dict[int, str]]:
        rows = {0: "batch_size"}
        return {
            "hidden_states": {0: "batch_size", 2: "height", 3: "width"},
            "encoder_hidden_states": {0: "batch_size", 1: "sequence_length"},
            "timestep": rows,
            "original_size": rows,
            "target_size": rows,
            "crop_coords": rows,
        }

    @property
    def outputs(self) -> dict[str, dict[int, str]]:
        return {"out_hidden_states": {0: "batch_size", 2: "height", 3: "width"}}

    @property
    def torch_to_onnx_output_map(self) -> dict[str, str]:
        return {"sample": "out_hidden_states"}

    def generate_dummy_inputs(
        self, framework: str = "pt", *, batch_size: int = 2, sequence_length: int = 16, **_: int
    ) -> dict[str, torch.Tensor]:
        generator = torch.Generator().manual_seed(0)
        config, dtype = self._config, self._dtype()

        def noise(*shape: int) -> torch.Tensor:
            return torch.randn((batch_size, *shape), generator=generator).to(dtype)

        sizes = torch.full((batch_size, 2), 512.0, dtype=dtype)
        return {
            "hidden_states": noise(config.in_channels, 16, 16),
            "encoder_hidden_states": noise(sequence_length, config.text_embed_dim),
            "timestep": torch.linspace(1, 950.5, batch_size),
            "original_size": sizes,
            "target_size": sizes.clone(),
            "crop_coords": torch.zeros((batch_size, 2), dtype=dtype),
        }


class _Attention:
    """The processor of diffusers without its assignments to slices, which keep the length they were traced with."""

    def __call__(
        self,
        attn: Attention,
        hidden_states: torch.Tensor,
        encoder_hidden_states: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        image_rotary_emb: tuple[torch.Tensor, torch.Tensor] | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        texts = encoder_hidden_states.shape[1]
        joined = torch.cat([encoder_hidden_states, hidden_states], dim=1)

        def heads(project: nn.Module) -> torch.Tensor:
            return project(joined).unflatten(2, (attn.heads, -1)).transpose(1, 2)

        def turned(part: torch.Tensor) -> torch.Tensor:
            rotated = apply_rotary_emb(part[:, :, texts:], image_rotary_emb, use_real_unbind_dim=-2)
            return torch.cat([part[:, :, :texts], rotated], dim=2)

        query, key = turned(attn.norm_q(heads(attn.to_q))), turned(attn.norm_k(heads(attn.to_k)))
        values = scaled_dot_product_attention(query, key, heads(attn.to_v)).transpose(1, 2).flatten(2, 3)
        output = attn.to_out[0](values)
        return output[:, texts:], output[:, :texts]


def list_cogview4_models(pipeline: DiffusionPipeline, dtype: str) -> dict[str, tuple[nn.Module, OnnxConfig]]:
    """The same as Optimum's `get_diffusion_models_for_export`, without an encoder of images."""
    text_encoder, transformer, vae = pipeline.text_encoder, pipeline.transformer, pipeline.vae
    _give_one_layer(text_encoder)
    for block in transformer.transformer_blocks:
        block.attn1.set_processor(_Attention())
    vae.forward = lambda latent_sample: vae.decode(z=latent_sample)
    return {
        "text_encoder": (text_encoder, _Glm(text_encoder.config, task=_TASK, float_dtype=dtype)),
        "transformer": (transformer, _Transformer(transformer.config, task=_TASK, float_dtype=dtype)),
        "vae_decoder": (vae, VaeDecoderOnnxConfig(vae.config, task="semantic-segmentation", float_dtype=dtype)),
    }


def _give_one_layer(model: nn.Module) -> None:
    model.set_attn_implementation("eager")
    name, forward = _hidden_state(model.config), model.forward

    def forward_one(input_ids: torch.Tensor) -> dict[str, torch.Tensor]:
        # The mask that the model makes when it is given none, without the search for packed texts, which ONNX has no
        # operator for.
        positions = torch.arange(input_ids.shape[1])
        later = positions[None, :] > positions[:, None]
        mask = torch.where(later, torch.finfo(model.dtype).min, 0.0).to(model.dtype)[None, None]
        # That of torch's exporter wants a length that is known.
        with mock.patch.object(torch.Tensor, "repeat_interleave", _repeat):
            states = forward(input_ids, attention_mask=mask, use_cache=False, output_hidden_states=True).hidden_states
        return {name: states[model.config.num_hidden_layers - 1]}

    model.forward = forward_one


def _repeat(values: torch.Tensor, times: int, dim: int) -> torch.Tensor:
    return torch.stack([values] * times, dim).flatten(dim - 1)


def _hidden_state(config: object) -> str:
    return f"hidden_states.{config.num_hidden_layers - 1}"
