"""Records whole runs of diffusers' StableDiffusion3Pipeline with tiny models of random weights, for the tests of ours.

    pip install torch==2.15.0 diffusers==0.42.1 transformers==5.23.0 onnx==1.23.2 numpy==2.4.6
    python tools/golden/record-t5-tokenizer.py
    python tools/golden/record-stable-diffusion-3.py

Recorded with Python 3.11 on the CPU, into vectors/pipelines/, as record-pipelines.py describes it. One model, twice: with all
three text encoders, and without the third and with a shift that goes with the size. Sizes are about those of diffusers' own tests.
"""

import importlib
import json
import pathlib
import shutil
import sys

import onnx
import torch
from diffusers import (
    AutoencoderKL,
    FlowMatchEulerDiscreteScheduler,
    SD3Transformer2DModel,
    StableDiffusion3Pipeline,
    UniPCMultistepScheduler,
)
from transformers import CLIPTextModelWithProjection, CLIPTokenizer, T5Config, T5EncoderModel, T5TokenizerFast

sys.path.insert(0, str(pathlib.Path(__file__).parent))
shared = importlib.import_module("record-pipelines")

NAME = "stable-diffusion-3"
WITHOUT_T5 = "stable-diffusion-3-without-t5"
FOLDER = shared.TARGET / NAME / "model"
CHANNELS = 16
# Wider than both CLIP encoders together, as that of the published models.
JOINT_WIDTH = 32
LONG_PROMPT = "a red apple and a green tree and " * 30


class UniPcOfFlow:
    """UniPC is told about flow matching in words that the file of the other class does not have."""

    @staticmethod
    def from_config(config):
        flow = {"use_flow_sigmas": True, "prediction_type": "flow_prediction", "flow_shift": config["shift"]}
        return UniPCMultistepScheduler.from_config({**config, **flow})


def transformer():
    # The second kind of attention and the norms are those of Stable Diffusion 3.5.
    create = lambda: SD3Transformer2DModel(
        sample_size=8,
        patch_size=2,
        in_channels=CHANNELS,
        out_channels=CHANNELS,
        num_layers=2,
        attention_head_dim=8,
        num_attention_heads=2,
        caption_projection_dim=16,
        joint_attention_dim=JOINT_WIDTH,
        pooled_projection_dim=10 + 12,
        pos_embed_max_size=6,
        dual_attention_layers=(0,),
        qk_norm="rms_norm",
    )
    return shared.seeded(create, 1.5)


def vae():
    create = lambda: AutoencoderKL(
        block_out_channels=[4, 4, 8],
        down_block_types=["DownEncoderBlock2D"] * 3,
        up_block_types=["UpDecoderBlock2D"] * 3,
        layers_per_block=1,
        latent_channels=CHANNELS,
        norm_num_groups=2,
        sample_size=32,
        scaling_factor=1.5305,
        shift_factor=0.0609,
        use_quant_conv=False,
        use_post_quant_conv=False,
    )
    return shared.seeded(create, 1.3)


def t5(tokenizer):
    config = T5Config(
        vocab_size=len(tokenizer) + 8,
        d_model=JOINT_WIDTH,
        d_kv=8,
        d_ff=40,
        num_layers=2,
        num_heads=4,
        feed_forward_proj="gated-gelu",
        relative_attention_num_buckets=8,
        relative_attention_max_distance=32,
    )
    return shared.seeded(lambda: T5EncoderModel(config), 1.5)


def clip(**config):
    small = {"hidden_size": 8, "intermediate_size": 24, "num_hidden_layers": 2, "projection_dim": 10}
    return shared.text_encoder(CLIPTextModelWithProjection, **{**small, **config})


def shorten_names(path):
    """Exports name every number by where the model has it, which in models as small as these is a third of the file."""
    model = onnx.load(path)
    graph = model.graph
    kept = {value.name for value in [*graph.input, *graph.output]} | {""}
    names = {}
    short = lambda name: name if name in kept else names.setdefault(name, f"v{len(names)}")
    for tensor in graph.initializer:
        tensor.name = short(tensor.name)
    for node in graph.node:
        assert all(attribute.type != onnx.AttributeProto.GRAPH for attribute in node.attribute)
        node.ClearField("name")
        for values in (node.input, node.output):
            values[:] = [short(name) for name in values]
    del graph.value_info[:]
    onnx.save(model, path)


def export_t5(folder, model):
    inputs = {"input_ids": (torch.zeros((2, 256), dtype=torch.int64), shared.TOKENS)}
    shared.export(folder, model, lambda model, ids: model(ids).last_hidden_state, inputs, ["last_hidden_state"])


def export_transformer(folder, model):
    config = model.config
    inputs = {
        "hidden_states": (torch.randn(2, CHANNELS, 8, 8), shared.PIXELS),
        "encoder_hidden_states": (torch.randn(2, 77 + 256, config.joint_attention_dim), shared.TOKENS),
        "pooled_projections": (torch.randn(2, config.pooled_projection_dim), shared.ROWS),
        "timestep": (torch.tensor([5.0, 7.0]), {0: "step"}),
    }

    def forward(model, hidden_states, encoder_hidden_states, pooled_projections, timestep):
        return model(hidden_states, encoder_hidden_states, pooled_projections, timestep, return_dict=False)[0]

    shared.export(folder, model, forward, inputs, ["out_hidden_states"])


def save_index(folder, scheduler, has_t5):
    scheduler.save_pretrained(folder / "scheduler")
    third = {
        "text_encoder_3": ["transformers", "T5EncoderModel"] if has_t5 else [None, None],
        "tokenizer_3": ["transformers", "T5TokenizerFast"] if has_t5 else [None, None],
    }
    index = {"_class_name": "StableDiffusion3Pipeline", **third}
    (folder / "model_index.json").write_text(json.dumps(index, indent=2) + "\n")


def save_tokenizers():
    for name, pad_token in {"tokenizer": "<|endoftext|>", "tokenizer_2": "!"}.items():
        (FOLDER / name).mkdir(parents=True, exist_ok=True)
        for file in ("vocab.json", "merges.txt", "tokenizer_config.json"):
            shutil.copy(shared.TOKENIZER / file, FOLDER / name / file)
        path = FOLDER / name / "tokenizer_config.json"
        # As those of the published models, which differ in this only.
        path.write_text(json.dumps({**json.loads(path.read_text()), "pad_token": pad_token}, indent=2) + "\n")


def copy_others(folder):
    for name in ("text_encoder", "text_encoder_2", "tokenizer", "tokenizer_2", "transformer", "vae_decoder", "vae_encoder"):
        shutil.copytree(FOLDER / name, folder / name, dirs_exist_ok=True)


def create_parts():
    tokenizers = {
        "tokenizer": CLIPTokenizer.from_pretrained(str(FOLDER / "tokenizer")),
        "tokenizer_2": CLIPTokenizer.from_pretrained(str(FOLDER / "tokenizer_2")),
        "tokenizer_3": T5TokenizerFast.from_pretrained(str(FOLDER / "tokenizer_3")),
    }
    encoders = {
        "text_encoder": clip(),
        "text_encoder_2": clip(hidden_act="gelu", hidden_size=12, projection_dim=12),
        "text_encoder_3": t5(tokenizers["tokenizer_3"]),
    }
    return {"transformer": transformer(), "vae": vae()}, encoders, tokenizers


def main():
    shared.SCHEDULERS |= {"flow_match_euler": FlowMatchEulerDiscreteScheduler, "unipc": UniPcOfFlow}
    save_tokenizers()
    parts, encoders, tokenizers = create_parts()
    shared.export_text_encoder(FOLDER / "text_encoder", encoders["text_encoder"], pooled="text_embeds")
    shared.export_text_encoder(FOLDER / "text_encoder_2", encoders["text_encoder_2"], pooled="text_embeds")
    export_t5(FOLDER / "text_encoder_3", encoders["text_encoder_3"])
    export_transformer(FOLDER / "transformer", parts["transformer"])
    shared.export_vae(FOLDER, parts["vae"])
    for path in FOLDER.glob("*/model.onnx"):
        shorten_names(path)

    scheduler = FlowMatchEulerDiscreteScheduler(shift=3.0)
    save_index(FOLDER, scheduler, has_t5=True)
    usual = {"scheduler": "flow_match_euler"}
    shared.record(
        NAME,
        StableDiffusion3Pipeline(**parts, **encoders, **tokenizers, scheduler=scheduler),
        [
            {**usual, "numInferenceSteps": 4, "guidanceScale": 7, "negativePrompt": "a house"},
            {**usual, "numInferenceSteps": 3, "guidanceScale": 4.5, "width": 24, "height": 40, "seed": 1},
            {**usual, "numInferenceSteps": 1, "guidanceScale": 5, "prompt": LONG_PROMPT},
            {"scheduler": "unipc", "numInferenceSteps": 4, "guidanceScale": 6, "prompt": "a ﬁne ｗｉｄｅ blue bird 👍"},
            {**usual, "numInferenceSteps": 2, "guidanceScale": 1, "width": 48, "height": 16, "prompt": "漢字 and a cat"},
        ],
    )

    # As that of Stable Diffusion 3.5 Turbo, but for its numbers, which small images are far below.
    dynamic = FlowMatchEulerDiscreteScheduler(use_dynamic_shifting=True, base_image_seq_len=8, max_image_seq_len=64)
    save_index(shared.TARGET / WITHOUT_T5 / "model", dynamic, has_t5=False)
    copy_others(shared.TARGET / WITHOUT_T5 / "model")
    without = {**encoders, **tokenizers, "text_encoder_3": None, "tokenizer_3": None}
    shared.record(
        WITHOUT_T5,
        StableDiffusion3Pipeline(**parts, **without, scheduler=dynamic),
        [
            {**usual, "numInferenceSteps": 3, "guidanceScale": 7, "negativePrompt": "a house"},
            {**usual, "numInferenceSteps": 4, "guidanceScale": 0, "width": 24, "height": 40, "seed": 1},
            {"scheduler": "unipc", "numInferenceSteps": 3, "guidanceScale": 3, "width": 48, "height": 16},
        ],
    )


if __name__ == "__main__":
    main()
