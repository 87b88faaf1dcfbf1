"""Records runs of diffusers' pipelines with adapters, of the tiny models of record-pipelines.py, for the tests of ours.

    pip install torch==2.15.0 diffusers==0.42.1 transformers==5.23.0 peft==0.21.2 onnx==1.23.2 numpy==2.4.6
    python tools/golden/record-loras.py [name...]

Recorded with Python 3.11 on the CPU. For each model, vectors/loras/<name>/ has two adapters of random numbers:
peft.safetensors as diffusers saves it, of attention and with its alpha in the metadata, and kohya.safetensors with
kohya's names, of all layers and with an alpha each; the graph that takes them, whose weights lie in the model of vectors/pipelines; and
recorded.json: the request, and the latents after each step (float32, base64, little-endian). Which layer a name
means, and what alpha and scale do, is diffusers' doing.
"""

import base64
import importlib.util
import json
import pathlib
import shutil
import sys
import tempfile

import diffusers
import numpy as np
import peft
import torch
from peft import LoraConfig
from peft.utils import get_peft_model_state_dict
from safetensors.torch import save_file

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TARGET = HERE / "vectors/loras"
sys.path.insert(0, str(ROOT / "tools/export"))

from export_model.loras import loras_file, write_loras_graph  # noqa: E402

spec = importlib.util.spec_from_file_location("record_pipelines", HERE / "record-pipelines.py")
pipelines = importlib.util.module_from_spec(spec)
spec.loader.exec_module(pipelines)

MODELS = pipelines.TARGET
ATTENTION = ["to_q", "to_k", "to_v", "to_out.0"]
ALL = [*ATTENTION, "proj_in", "proj_out", "ff.net.0.proj", "ff.net.2"]


def add_random(unet, adapter, *, rank, alpha, targets, seed):
    config = LoraConfig(r=rank, lora_alpha=alpha, target_modules=targets, init_lora_weights=False)
    torch.manual_seed(seed)
    unet.add_adapter(config, adapter_name=adapter)
    with torch.no_grad():
        for name, parameter in unet.named_parameters():
            if f".{adapter}." in name:
                torch.nn.init.normal_(parameter, std=0.3)
    return {name: value.contiguous() for name, value in get_peft_model_state_dict(unet, adapter_name=adapter).items()}


def save_adapters(pipeline, folder):
    """Both files, and the adapters taken off again."""
    unet = pipeline.unet
    layers = add_random(unet, "peft", rank=4, alpha=6, targets=ATTENTION, seed=1)
    metadata = {"r": 4, "lora_alpha": 6, "target_modules": ATTENTION}
    pipeline.save_lora_weights(
        folder, unet_lora_layers=layers, unet_lora_adapter_metadata=metadata, weight_name="peft.safetensors"
    )
    unet.delete_adapters("peft")
    layers = add_random(unet, "kohya", rank=18, alpha=18, targets=ALL, seed=2)
    unet.delete_adapters("kohya")
    saved = {}
    for name, value in layers.items():
        layer, end = name.removesuffix(".weight").rsplit(".lora_", 1)
        key = f"lora_unet_{layer.replace('.', '_')}"
        saved[f"{key}.lora_{'down' if end == 'A' else 'up'}.weight"] = value.to(torch.float16)
        saved[f"{key}.alpha"] = torch.tensor(9.0)
    save_file(saved, folder / "kohya.safetensors")


CASES = [
    {"loras": [{"id": "peft", "scale": 1}], "guidanceScale": 3},
    {"loras": [{"id": "kohya", "scale": 0.6}], "guidanceScale": 1},
    {"loras": [{"id": "peft", "scale": -0.5}, {"id": "kohya", "scale": 0.8}], "guidanceScale": 5},
]


def run(pipeline, request):
    """The latents after each step."""
    latents = []

    def keep(_pipeline, _step, _timestep, tensors):
        latents.append(tensors["latents"][0].numpy().copy())
        return tensors

    pipeline(
        request["prompt"],
        width=request["width"],
        height=request["height"],
        num_inference_steps=request["numInferenceSteps"],
        guidance_scale=request["guidanceScale"],
        negative_prompt=request.get("negativePrompt"),
        generator=torch.Generator("cpu").manual_seed(request["seed"]),
        callback_on_step_end=keep,
        output_type="latent",
    )
    return latents


def record(name, pipeline, cases):
    """In place of that of record-pipelines.py, whose first case must come out as it did."""
    folder = TARGET / name
    scheduler = cases[0]["scheduler"]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    pipeline.set_progress_bar_config(disable=True)
    expected = json.loads((MODELS / name / "recorded.json").read_text())["runs"][0]
    latents = np.frombuffer(base64.b64decode(expected["latents"]), "<f4")
    # Last bits differ from CPU to CPU.
    if not np.allclose(np.ravel(run(pipeline, expected["request"])), latents, rtol=1e-3, atol=1e-4):
        raise SystemExit(f"{name}: this torch makes another model than the one of vectors/pipelines")
    save_adapters(pipeline, folder)
    for adapter in ("peft", "kohya"):
        pipeline.load_lora_weights(folder, weight_name=f"{adapter}.safetensors", adapter_name=adapter)
    graph = MODELS / name / "model/unet/model.onnx"
    write_loras_graph(graph)
    shutil.move(loras_file(graph), folder / "model.loras.onnx")
    runs = []
    for case in CASES:
        request = {"prompt": pipelines.PROMPT, "seed": 7, "width": 32, "height": 24, **case}
        request |= {"scheduler": scheduler, "numInferenceSteps": 3}
        pipeline.set_adapters([each["id"] for each in case["loras"]], [each["scale"] for each in case["loras"]])
        runs.append({"request": request, "latents": pipelines.packed(run(pipeline, request), "<f4")})
    versions = {"torch": torch.__version__, "diffusers": diffusers.__version__, "peft": peft.__version__}
    rows = ",\n".join("  " + json.dumps(row) for row in runs)
    (folder / "recorded.json").write_text('{"versions": ' + json.dumps(versions) + ', "runs": [\n' + rows + "\n]}\n")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        # Models are made as they were; what lies in vectors/pipelines stays.
        pipelines.TARGET = pathlib.Path(scratch)
        pipelines.export = lambda *_: None
        pipelines.record = record
        for recorder in sys.argv[1:] or pipelines.RECORDERS:
            pipelines.RECORDERS[recorder]()
