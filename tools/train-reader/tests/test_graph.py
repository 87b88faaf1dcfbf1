"""The graphs compute what the network does, and what transformers does with the same weights."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from train_emoji.evaluation import load_graph

from train_reader.evaluation import OnnxReader
from train_reader.images import READ_SIDE, to_pixel_values
from train_reader.model import Reader
from train_reader.tokenizer import IMAGE

transformers = pytest.importorskip("transformers")

IMAGES = np.random.default_rng(0).integers(0, 256, (2, 128, 128, 3), np.uint8)


@pytest.mark.parametrize(("suffix", "tolerance"), [("", 1e-4), ("_int8", 0.1)])
def test_the_encoder_computes_what_torch_does(reader: Reader, directory: Path, suffix: str, tolerance: float) -> None:
    graph = load_graph(directory / f"onnx/vision_encoder{suffix}.onnx", 1)
    pixels = to_pixel_values(IMAGES)
    found = graph.run(None, {"pixel_values": pixels})[0]
    with torch.no_grad():
        wanted = reader.encode_images(torch.from_numpy(pixels)).numpy()
    assert found.shape == (2, reader.vision.shape.patches, reader.text.shape.width)
    assert np.abs(found - wanted).max() < tolerance


def test_transformers_computes_the_same_logits(reader: Reader, directory: Path) -> None:
    config = transformers.LlavaConfig.from_dict(json.loads((directory / "config.json").read_text()))
    model = transformers.LlavaForConditionalGeneration(config).eval()
    missing = model.load_state_dict(load_file(directory / "model.safetensors"), strict=False)
    assert missing.missing_keys in ([], ["lm_head.weight"])
    assert missing.unexpected_keys == []
    model.tie_weights()
    ids = torch.tensor([[1, 7, *[IMAGE] * reader.vision.shape.patches, 8, 9]])
    pixels = torch.from_numpy(to_pixel_values(IMAGES[:1]))
    length = ids.shape[1]
    causal = torch.ones(1, length, length, dtype=torch.bool).tril()
    with torch.no_grad():
        wanted = model(input_ids=ids, pixel_values=pixels).logits
        found = reader(pixels, ids, torch.arange(length)[None], causal)
    assert (found - wanted).abs().max() < 1e-4


def test_images_are_prepared_as_transformers_does(directory: Path) -> None:
    processor = transformers.CLIPImageProcessorPil.from_pretrained(directory)
    wanted = processor([*IMAGES], return_tensors="np")["pixel_values"]
    assert wanted.shape == (2, 3, READ_SIDE, READ_SIDE)
    assert np.abs(to_pixel_values(IMAGES) - wanted).max() < 1e-6


def test_the_cache_continues_a_text(directory: Path) -> None:
    reader = OnnxReader(directory, "")
    features = reader.encode_image(IMAGES[0])
    assert reader.answer(features, "what is it?") == reader.answer(features, "what is it?")
