"""Tiny checkpoints of random weights, one of each pipeline that can be exported."""

from collections.abc import Callable
from pathlib import Path

import torch
from diffusers import (
    AutoencoderKL,
    CogView4Pipeline,
    CogView4Transformer2DModel,
    DDIMScheduler,
    DiffusionPipeline,
    EulerDiscreteScheduler,
    FlowMatchEulerDiscreteScheduler,
    LatentConsistencyModelPipeline,
    LCMScheduler,
    SD3Transformer2DModel,
    StableDiffusion3Pipeline,
    StableDiffusionPipeline,
    StableDiffusionXLPipeline,
    UNet2DConditionModel,
)
from tokenizers import Tokenizer, models
from torch import nn
from transformers import (
    CLIPTextConfig,
    CLIPTextModel,
    CLIPTextModelWithProjection,
    CLIPTokenizer,
    GlmConfig,
    GlmModel,
    PreTrainedTokenizerFast,
    T5Config,
    T5EncoderModel,
    T5TokenizerFast,
)

TOKENIZER = Path(__file__).resolve().parents[3] / "models/emoji-sd/tokenizer"
_GLM_TOKENIZER = TOKENIZER.parents[2] / "tools/golden/vectors/pipelines/cogview4/model/tokenizer"
_NOISE = {"beta_start": 0.00085, "beta_end": 0.012, "beta_schedule": "scaled_linear"}
_LOOSE = {"safety_checker": None, "feature_extractor": None}


def _seeded(create: Callable[[], nn.Module]) -> nn.Module:
    torch.manual_seed(0)
    return create().eval()


def _unet(**config: object) -> UNet2DConditionModel:
    shared = {
        "block_out_channels": (16, 32),
        "sample_size": 16,
        "down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D"),
        "up_block_types": ("CrossAttnUpBlock2D", "UpBlock2D"),
        "norm_num_groups": 4,
        "layers_per_block": 1,
        "cross_attention_dim": 32,
        "attention_head_dim": (2, 4),
    }
    return _seeded(lambda: UNet2DConditionModel(**{**shared, **config}))


def _vae(**config: object) -> AutoencoderKL:
    shared = {
        "block_out_channels": [8, 16],
        "down_block_types": ["DownEncoderBlock2D"] * 2,
        "up_block_types": ["UpDecoderBlock2D"] * 2,
        "norm_num_groups": 2,
        "sample_size": 32,
        "force_upcast": False,
    }
    return _seeded(lambda: AutoencoderKL(**{**shared, **config}))


def _text_encoder(kind: type = CLIPTextModel, **config: object) -> nn.Module:
    shared = {
        "bos_token_id": 1446,
        "eos_token_id": 1447,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_attention_heads": 4,
        "num_hidden_layers": 2,
        "pad_token_id": 1447,
        "vocab_size": 1448,
        "projection_dim": 32,
    }
    return _seeded(lambda: kind(CLIPTextConfig(**{**shared, **config})))


def _clip() -> CLIPTokenizer:
    return CLIPTokenizer.from_pretrained(TOKENIZER)


def stable_diffusion() -> DiffusionPipeline:
    """As 2.1."""
    scheduler = DDIMScheduler(
        **_NOISE, clip_sample=False, prediction_type="v_prediction", set_alpha_to_one=False, steps_offset=1
    )
    parts = {"vae": _vae(), "text_encoder": _text_encoder(hidden_act="gelu"), "tokenizer": _clip(), "unet": _unet()}
    return StableDiffusionPipeline(**parts, scheduler=scheduler, **_LOOSE, requires_safety_checker=False)


def smallest() -> DiffusionPipeline:
    """A Stable Diffusion of which three dtypes are small enough to be kept in git."""
    unet = _unet(block_out_channels=(8, 16), norm_num_groups=2, cross_attention_dim=16, mid_block_type=None)
    text_encoder = _text_encoder(hidden_size=16, intermediate_size=32, num_hidden_layers=1)
    vae = _vae(block_out_channels=[8, 8])
    parts = {"vae": vae, "text_encoder": text_encoder, "tokenizer": _clip(), "unet": unet}
    return StableDiffusionPipeline(**parts, scheduler=DDIMScheduler(**_NOISE), **_LOOSE, requires_safety_checker=False)


def latent_consistency() -> DiffusionPipeline:
    """With an embedding of the guidance."""
    scheduler = LCMScheduler(**_NOISE, clip_sample=False, set_alpha_to_one=False)
    parts = {"vae": _vae(), "text_encoder": _text_encoder(), "tokenizer": _clip(), "unet": _unet(time_cond_proj_dim=32)}
    return LatentConsistencyModelPipeline(**parts, scheduler=scheduler, **_LOOSE, requires_safety_checker=False)


def stable_diffusion_xl() -> DiffusionPipeline:
    """Whose VAE must not be fp16, as that of the base model."""
    unet = _unet(
        cross_attention_dim=64,
        use_linear_projection=True,
        addition_embed_type="text_time",
        addition_time_embed_dim=8,
        transformer_layers_per_block=(1, 2),
        projection_class_embeddings_input_dim=6 * 8 + 24,
    )
    second = _text_encoder(CLIPTextModelWithProjection, hidden_act="gelu", projection_dim=24)
    return StableDiffusionXLPipeline(
        vae=_vae(force_upcast=True),
        text_encoder=_text_encoder(),
        text_encoder_2=second,
        tokenizer=_clip(),
        tokenizer_2=_clip(),
        unet=unet,
        scheduler=EulerDiscreteScheduler(**_NOISE, steps_offset=1, timestep_spacing="leading"),
        add_watermarker=False,
    )


def stable_diffusion_3() -> DiffusionPipeline:
    """With all three text encoders."""
    pieces = [
        ("<pad>", 0.0),
        ("</s>", 0.0),
        ("<unk>", 0.0),
        *((letter, -1.0) for letter in "▁abcdefghijklmnopqrstuvwxyz"),
    ]
    t5_tokenizer = T5TokenizerFast(tokenizer_object=Tokenizer(models.Unigram(pieces, unk_id=2)), extra_ids=0)
    transformer = _seeded(
        lambda: SD3Transformer2DModel(
            sample_size=16,
            patch_size=2,
            in_channels=4,
            num_layers=2,
            attention_head_dim=8,
            num_attention_heads=4,
            caption_projection_dim=32,
            joint_attention_dim=64,
            pooled_projection_dim=64,
            out_channels=4,
            pos_embed_max_size=24,
        )
    )
    t5 = T5Config(
        vocab_size=len(pieces),
        d_model=64,
        d_kv=8,
        d_ff=64,
        num_layers=2,
        num_heads=4,
        feed_forward_proj="gated-gelu",
    )
    return StableDiffusion3Pipeline(
        transformer=transformer,
        scheduler=FlowMatchEulerDiscreteScheduler(shift=3),
        vae=_vae(shift_factor=0.06, use_quant_conv=False, use_post_quant_conv=False),
        text_encoder=_text_encoder(CLIPTextModelWithProjection),
        tokenizer=_clip(),
        text_encoder_2=_text_encoder(CLIPTextModelWithProjection, hidden_act="gelu"),
        tokenizer_2=_clip(),
        text_encoder_3=_seeded(lambda: T5EncoderModel(t5)),
        tokenizer_3=t5_tokenizer,
    )


def cogview4() -> DiffusionPipeline:
    """With a GLM text encoder."""
    glm = GlmConfig(
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        vocab_size=809,
        pad_token_id=0,
        eos_token_id=0,
        max_position_embeddings=2048,
    )
    transformer = _seeded(
        lambda: CogView4Transformer2DModel(
            patch_size=2,
            in_channels=16,
            num_layers=2,
            attention_head_dim=8,
            num_attention_heads=4,
            out_channels=16,
            text_embed_dim=32,
            time_embed_dim=8,
            condition_dim=4,
            pos_embed_max_size=8,
            sample_size=8,
        )
    )
    # As that of CogView4-6B.
    scheduler = FlowMatchEulerDiscreteScheduler(
        base_shift=0.25, max_shift=0.75, base_image_seq_len=256, use_dynamic_shifting=True, time_shift_type="linear"
    )
    return CogView4Pipeline(
        tokenizer=PreTrainedTokenizerFast.from_pretrained(_GLM_TOKENIZER),
        text_encoder=_seeded(lambda: GlmModel(glm)),
        vae=_vae(latent_channels=16, use_quant_conv=False, use_post_quant_conv=False),
        transformer=transformer,
        scheduler=scheduler,
    )


PIPELINES = {
    "stable_diffusion": stable_diffusion,
    "latent_consistency": latent_consistency,
    "stable_diffusion_xl": stable_diffusion_xl,
    "stable_diffusion_3": stable_diffusion_3,
    "cogview4": cogview4,
}
