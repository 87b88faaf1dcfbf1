"""Records whole runs of diffusers' pipelines with tiny models of random weights, for the tests of ours.

    pip install torch==2.15.0 diffusers==0.42.1 transformers==5.23.0 onnx==1.23.2 numpy==2.4.6
    python tools/golden/record-pipelines.py [name...]

Recorded with Python 3.11 on the CPU. For each pipeline, vectors/pipelines/<name>/ has the model in the layout, and with
the names of inputs and outputs, of Optimum's exporter, and recorded.json: the request, the latents after each
step (float32), and the image (8 bits, RGB), both in base64, little-endian. Sizes of the models are about those of
diffusers' own tests; the weights are made larger than their initial ones, so that prompt, guidance and size all count.
The tokenizer is that of models/emoji-sd.
"""

import base64
import json
import pathlib
import shutil
import sys

import diffusers
import numpy as np
import torch
import transformers
from diffusers import (
    AutoencoderKL,
    DDIMScheduler,
    EulerDiscreteScheduler,
    LatentConsistencyModelPipeline,
    LCMScheduler,
    StableDiffusionPipeline,
    StableDiffusionXLPipeline,
    UNet2DConditionModel,
)
from transformers import CLIPTextConfig, CLIPTextModel, CLIPTextModelWithProjection, CLIPTokenizer

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGET = ROOT / "tools/golden/vectors/pipelines"
TOKENIZER = ROOT / "models/emoji-sd/tokenizer"
OPSET = 18
PROMPT = "a red apple on a white background"
SCHEDULERS = {
    "ddim": diffusers.DDIMScheduler,
    "euler": diffusers.EulerDiscreteScheduler,
    "euler_ancestral": diffusers.EulerAncestralDiscreteScheduler,
    "dpmpp_2m": diffusers.DPMSolverMultistepScheduler,
    "lcm": diffusers.LCMScheduler,
}
NOISE = {"beta_start": 0.00085, "beta_end": 0.012, "beta_schedule": "scaled_linear"}


def seeded(create, gain):
    """A model whose random weights are the same at each recording."""
    torch.manual_seed(0)
    model = create().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.mul_(gain)
    return model


def unet_of(**config):
    shared = {
        "block_out_channels": (8, 16),
        "sample_size": 16,
        "in_channels": 4,
        "out_channels": 4,
        "down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D"),
        "up_block_types": ("CrossAttnUpBlock2D", "UpBlock2D"),
        "norm_num_groups": 2,
    }
    return seeded(lambda: UNet2DConditionModel(**{**shared, **config}), 1.3)


def vae():
    create = lambda: AutoencoderKL(
        block_out_channels=[4, 8],
        down_block_types=["DownEncoderBlock2D"] * 2,
        up_block_types=["UpDecoderBlock2D"] * 2,
        latent_channels=4,
        norm_num_groups=2,
        sample_size=32,
        scaling_factor=0.13025,
    )
    return seeded(create, 1.3)


def text_encoder(create=CLIPTextModel, **config):
    shared = {
        "bos_token_id": 1446,
        "eos_token_id": 1447,
        "hidden_size": 32,
        "intermediate_size": 37,
        "num_attention_heads": 4,
        "num_hidden_layers": 3,
        "pad_token_id": 1,
        "vocab_size": 1448,
        "projection_dim": 32,
    }
    return seeded(lambda: create(CLIPTextConfig(**{**shared, **config})), 4)


class Wrapped(torch.nn.Module):
    """A model with the inputs and outputs of an exported graph."""

    def __init__(self, model, forward):
        super().__init__()
        self.model, self.call = model, forward

    def forward(self, *inputs):
        return self.call(self.model, *inputs)


def export(folder, model, forward, inputs, outputs):
    """`inputs` by name: an example, and the names of the dimensions that vary."""
    folder.mkdir(parents=True, exist_ok=True)
    config = model.config if isinstance(model.config, dict) else model.config.to_dict()
    config = {key: value for key, value in config.items() if not key.startswith("_")}
    (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
    dynamic = {name: axes for name, (_, axes) in inputs.items()} | {name: {0: "batch_size"} for name in outputs}
    torch.onnx.export(
        Wrapped(model, forward).eval(),
        tuple(example for example, _ in inputs.values()),
        folder / "model.onnx",
        input_names=list(inputs),
        output_names=outputs,
        dynamic_axes=dynamic,
        opset_version=OPSET,
        dynamo=False,
    )


PIXELS = {0: "batch_size", 2: "height", 3: "width"}
TOKENS = {0: "batch_size", 1: "sequence_length"}
ROWS = {0: "batch_size"}


def export_text_encoder(folder, model, *, pooled=None):
    """`pooled`: the name of the first output of a model with projection, with all hidden states."""
    ids = torch.zeros((2, 77), dtype=torch.int64)
    layers = model.config.num_hidden_layers
    hidden = [f"hidden_states.{i}" for i in range(layers + 1)]
    if pooled is None:
        outputs = ["last_hidden_state", "pooler_output"] + hidden
        forward = lambda model, ids: (
            lambda out: (out.last_hidden_state, out.pooler_output, *out.hidden_states)
        )(model(ids, output_hidden_states=True))
    else:
        outputs = [pooled, "last_hidden_state"] + hidden
        forward = lambda model, ids: (
            lambda out: (out.text_embeds, out.last_hidden_state, *out.hidden_states)
        )(model(ids, output_hidden_states=True))
    export(folder, model, forward, {"input_ids": (ids, TOKENS)}, outputs)


def export_unet(folder, unet, extra, *, timestep_per_row):
    """`extra`: inputs besides the usual, by name, with their width."""
    width = unet.config.cross_attention_dim
    timestep = (torch.tensor([5, 7]), ROWS) if timestep_per_row else (torch.tensor(5), {})
    inputs = {
        "sample": (torch.randn(2, unet.config.in_channels, 16, 16), PIXELS),
        "timestep": timestep,
        "encoder_hidden_states": (torch.randn(2, 77, width), TOKENS),
        **{name: (torch.rand(2, columns), ROWS) for name, columns in extra.items()},
    }

    def forward(unet, sample, timestep, encoder_hidden_states, *rest):
        named = dict(zip(extra, rest))
        condition = named.pop("timestep_cond", None)
        added = {"added_cond_kwargs": named} if named else {}
        return unet(sample, timestep, encoder_hidden_states, timestep_cond=condition, **added).sample

    export(folder, unet, forward, inputs, ["out_sample"])


def export_vae(model, vae):
    channels = vae.config.latent_channels
    inputs = {"latent_sample": (torch.randn(2, channels, 16, 16), PIXELS)}
    export(model / "vae_decoder", vae, lambda vae, latents: vae.decode(latents).sample, inputs, ["sample"])
    export_vae_encoder(model / "vae_encoder", vae, lambda latents: latents.parameters)


def export_vae_encoder(folder, vae, give, output="latent_parameters"):
    """`give`: what of the distribution of latents the graph gives; as Optimum exports it, mean and logarithm of variance."""
    inputs = {"sample": (torch.randn(2, 3, 32, 32), PIXELS)}
    export(folder, vae, lambda vae, sample: give(vae.encode(sample).latent_dist), inputs, [output])


def packed(arrays, kind):
    return base64.b64encode(b"".join(np.ascontiguousarray(array, dtype=kind).tobytes() for array in arrays)).decode()


def record(name, pipeline, cases):
    """Runs each case. A case has the fields of our requests that are not the usual ones."""
    pipeline.set_progress_bar_config(disable=True)
    # From the file: of a scheduler made here, another class would not take over what was not said, but the default.
    config = json.loads((TARGET / name / "model/scheduler/scheduler_config.json").read_text())
    recorded = []
    for case in cases:
        request = {"prompt": PROMPT, "seed": 7, "width": 32, "height": 32, **case}
        latents = []

        def keep(_pipeline, _step, _timestep, tensors):
            latents.append(tensors["latents"][0].numpy().copy())
            return tensors

        options = {
            "prompt": request["prompt"],
            "width": request["width"],
            "height": request["height"],
            "num_inference_steps": request["numInferenceSteps"],
            "guidance_scale": request["guidanceScale"],
        }
        if "negativePrompt" in request:
            options["negative_prompt"] = request["negativePrompt"]
        if "guidanceRescale" in request:
            options["guidance_rescale"] = request["guidanceRescale"]
        pipeline.scheduler = SCHEDULERS[request["scheduler"]].from_config(config)
        generator = torch.Generator("cpu").manual_seed(request["seed"])
        image = pipeline(**options, generator=generator, callback_on_step_end=keep, output_type="np").images[0]
        recorded.append(
            {"request": request, "latents": packed(latents, "<f4"), "image": packed([(image * 255).round()], "u1")}
        )
    versions = {"torch": torch.__version__, "diffusers": diffusers.__version__, "transformers": transformers.__version__}
    rows = ",\n".join("  " + json.dumps(row) for row in recorded)
    head = f'"versions": {json.dumps(versions)}'
    (TARGET / name / "recorded.json").write_text("{" + head + ', "runs": [\n' + rows + "\n]}\n")


def save_small_files(folder, class_name, scheduler, **fields):
    folder.mkdir(parents=True, exist_ok=True)
    scheduler.save_pretrained(folder / "scheduler")
    (folder / "model_index.json").write_text(json.dumps({"_class_name": class_name, **fields}, indent=2) + "\n")
    (folder / "tokenizer").mkdir(exist_ok=True)
    for file in ("vocab.json", "merges.txt", "tokenizer_config.json"):
        shutil.copy(TOKENIZER / file, folder / "tokenizer" / file)


def stable_diffusion_2_parts(**config):
    unet = unet_of(
        layers_per_block=1, cross_attention_dim=32, attention_head_dim=(2, 4), use_linear_projection=True, **config
    )
    # As that of Stable Diffusion 2.1.
    scheduler = DDIMScheduler(
        **NOISE, clip_sample=False, prediction_type="v_prediction", set_alpha_to_one=False, steps_offset=1
    )
    return {"vae": vae(), "text_encoder": text_encoder(hidden_act="gelu"), "unet": unet, "scheduler": scheduler}


def stable_diffusion_2():
    name = "stable-diffusion-2"
    folder = TARGET / name / "model"
    parts = stable_diffusion_2_parts()
    unet = parts["unet"]
    save_small_files(folder, "StableDiffusionPipeline", parts["scheduler"])
    export_text_encoder(folder / "text_encoder", parts["text_encoder"])
    # As Optimum exports it: one timestep for all rows.
    export_unet(folder / "unet", unet, {}, timestep_per_row=False)
    export_vae(folder, parts["vae"])
    pipeline = StableDiffusionPipeline(
        **parts,
        tokenizer=CLIPTokenizer.from_pretrained(str(folder / "tokenizer")),
        safety_checker=None,
        feature_extractor=None,
        requires_safety_checker=False,
    )
    record(
        name,
        pipeline,
        [
            {"scheduler": "ddim", "numInferenceSteps": 5, "guidanceScale": 7.5},
            {"scheduler": "euler", "numInferenceSteps": 4, "guidanceScale": 9, "guidanceRescale": 0.7},
            {"scheduler": "dpmpp_2m", "numInferenceSteps": 5, "guidanceScale": 3, "negativePrompt": "a house"},
            {"scheduler": "ddim", "numInferenceSteps": 3, "guidanceScale": 1, "width": 24, "height": 40, "seed": 1},
        ],
    )


def latent_consistency_parts():
    unet = unet_of(layers_per_block=1, cross_attention_dim=32, attention_head_dim=4, time_cond_proj_dim=32)
    scheduler = LCMScheduler(**NOISE, clip_sample=False, set_alpha_to_one=False)
    return {"vae": vae(), "text_encoder": text_encoder(), "unet": unet, "scheduler": scheduler}


def latent_consistency():
    name = "latent-consistency"
    folder = TARGET / name / "model"
    parts = latent_consistency_parts()
    unet = parts["unet"]
    save_small_files(folder, "LatentConsistencyModelPipeline", parts["scheduler"])
    export_text_encoder(folder / "text_encoder", parts["text_encoder"])
    # As Optimum exports it: one timestep for all rows.
    export_unet(folder / "unet", unet, {"timestep_cond": 32}, timestep_per_row=False)
    export_vae(folder, parts["vae"])
    pipeline = LatentConsistencyModelPipeline(
        **parts,
        tokenizer=CLIPTokenizer.from_pretrained(str(folder / "tokenizer")),
        safety_checker=None,
        feature_extractor=None,
        requires_safety_checker=False,
    )
    record(
        name,
        pipeline,
        [
            {"scheduler": "lcm", "numInferenceSteps": 4, "guidanceScale": 8.5},
            {"scheduler": "lcm", "numInferenceSteps": 3, "guidanceScale": 1.5, "width": 24, "height": 40, "seed": 1},
            {"scheduler": "lcm", "numInferenceSteps": 1, "guidanceScale": 0, "prompt": "a blue bird"},
        ],
    )


def stable_diffusion_xl_parts(**config):
    unet = unet_of(
        layers_per_block=1,
        cross_attention_dim=64,
        attention_head_dim=(2, 4),
        use_linear_projection=True,
        addition_embed_type="text_time",
        addition_time_embed_dim=8,
        transformer_layers_per_block=(1, 2),
        projection_class_embeddings_input_dim=6 * 8 + 24,
        **config,
    )
    scheduler = EulerDiscreteScheduler(**NOISE, steps_offset=1, timestep_spacing="leading")
    first = text_encoder()
    second = text_encoder(CLIPTextModelWithProjection, num_hidden_layers=2, hidden_act="gelu", projection_dim=24)
    return {"vae": vae(), "text_encoder": first, "text_encoder_2": second, "unet": unet, "scheduler": scheduler}


def stable_diffusion_xl():
    name = "stable-diffusion-xl"
    folder = TARGET / name / "model"
    parts = stable_diffusion_xl_parts()
    unet, scheduler = parts["unet"], parts["scheduler"]
    save_small_files(folder, "StableDiffusionXLPipeline", scheduler, force_zeros_for_empty_prompt=True)
    shutil.copytree(folder / "tokenizer", folder / "tokenizer_2", dirs_exist_ok=True)
    config = json.loads((folder / "tokenizer_2/tokenizer_config.json").read_text())
    # As that of SDXL, whose two tokenizers differ in this only.
    (folder / "tokenizer_2/tokenizer_config.json").write_text(json.dumps({**config, "pad_token": "!"}, indent=2) + "\n")
    export_text_encoder(folder / "text_encoder", parts["text_encoder"])
    export_text_encoder(folder / "text_encoder_2", parts["text_encoder_2"], pooled="text_embeds")
    export_unet(folder / "unet", unet, {"text_embeds": 24, "time_ids": 6}, timestep_per_row=True)
    export_vae(folder, parts["vae"])
    pipeline = StableDiffusionXLPipeline(
        **parts,
        tokenizer=CLIPTokenizer.from_pretrained(str(folder / "tokenizer")),
        tokenizer_2=CLIPTokenizer.from_pretrained(str(folder / "tokenizer_2")),
        force_zeros_for_empty_prompt=True,
        add_watermarker=False,
    )
    record(
        name,
        pipeline,
        [
            {"scheduler": "euler", "numInferenceSteps": 5, "guidanceScale": 5, "negativePrompt": "a house"},
            {"scheduler": "euler", "numInferenceSteps": 3, "guidanceScale": 7.5, "width": 24, "height": 40, "seed": 1},
            {"scheduler": "dpmpp_2m", "numInferenceSteps": 5, "guidanceScale": 6, "guidanceRescale": 0.7},
            # SDXL-Turbo.
            {"scheduler": "euler_ancestral", "numInferenceSteps": 1, "guidanceScale": 0, "prompt": "a blue bird"},
            {"scheduler": "euler_ancestral", "numInferenceSteps": 3, "guidanceScale": 1, "seed": 5},
        ],
    )


RECORDERS = {
    "stable-diffusion-2": stable_diffusion_2,
    "latent-consistency": latent_consistency,
    "stable-diffusion-xl": stable_diffusion_xl,
}
if __name__ == "__main__":
    for recorder in sys.argv[1:] or RECORDERS:
        RECORDERS[recorder]()
