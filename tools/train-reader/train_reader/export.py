"""A finished model's directory, as transformers, transformers.js and Darkroom read it."""

import json
import shutil
from pathlib import Path

import onnx
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer
from train_writer.export import llama_weights
from train_writer.graph import build_graph

from train_reader.graph import build_embedding_graph, build_encoder_graph
from train_reader.images import DEVIATION, MEAN
from train_reader.model import Reader
from train_reader.recipe import Recipe
from train_reader.tokenizer import BEGIN, END, IMAGE, PAD, write_tokenizer

_LONGEST_ANSWER = 32


def export_model(result: Path, reader: Reader, tokenizer: Tokenizer, recipe: Recipe) -> None:
    """Writes the directory, whole or not at all: graphs in fp32 and INT8, the weights for transformers, configurations."""
    partial = result.with_name(f"{result.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    (partial / "onnx").mkdir(parents=True)
    table = reader.text.embedding.weight.detach().numpy()
    for is_int8, suffix in ((False, ""), (True, "_int8")):
        graphs = {
            "vision_encoder": build_encoder_graph(reader, is_int8),
            "embed_tokens": build_embedding_graph(table, is_int8),
            "decoder_model_merged": build_graph(reader.text, True, is_int8, reads="inputs_embeds"),
        }
        for name, graph in graphs.items():
            onnx.save(graph, partial / "onnx" / f"{name}{suffix}.onnx")
    save_file(llava_weights(reader), partial / "model.safetensors", metadata={"format": "pt"})
    ends = {"bos_token_id": BEGIN, "eos_token_id": END, "pad_token_id": PAD}
    for name, content in {
        "config.json": model_config(reader, recipe.context) | ends,
        "generation_config.json": {**ends, "do_sample": False, "max_new_tokens": _LONGEST_ANSWER},
        "preprocessor_config.json": _preprocessor_config(reader.vision.shape.side),
        "processor_config.json": {
            "image_token": "<image>",
            "patch_size": reader.vision.shape.patch,
            "processor_class": "LlavaProcessor",
            "num_additional_image_tokens": 1,
            "vision_feature_select_strategy": "default",
        },
    }.items():
        (partial / name).write_text(json.dumps(content, indent=2) + "\n")
    write_tokenizer(tokenizer, partial, recipe.context)
    shutil.rmtree(result, ignore_errors=True)
    partial.rename(result)


def model_config(reader: Reader, context: int) -> dict[str, object]:
    """config.json of transformers' LlavaForConditionalGeneration. `min_images` and `max_images` are Darkroom's."""
    text, vision = reader.text.shape, reader.vision.shape
    return {
        "architectures": ["LlavaForConditionalGeneration"],
        "model_type": "llava",
        "image_token_id": IMAGE,
        "image_token_index": IMAGE,
        "image_seq_length": vision.patches,
        "min_images": 1,
        "max_images": 1,
        "projector_hidden_act": "quick_gelu",
        "multimodal_projector_bias": True,
        "vision_feature_layer": -1,
        "vision_feature_select_strategy": "default",
        "tie_word_embeddings": True,
        "text_config": {
            "model_type": "llama",
            "vocab_size": text.vocabulary,
            "hidden_size": text.width,
            "intermediate_size": text.hidden,
            "num_hidden_layers": text.layers,
            "num_attention_heads": text.heads,
            "num_key_value_heads": text.key_heads,
            "head_dim": text.head_width,
            "hidden_act": "silu",
            "max_position_embeddings": context,
            "rms_norm_eps": text.epsilon,
            "rope_theta": text.theta,
            "attention_bias": False,
            "mlp_bias": False,
            "tie_word_embeddings": True,
        },
        "vision_config": {
            "model_type": "clip_vision_model",
            "image_size": vision.side,
            "patch_size": vision.patch,
            "hidden_size": vision.width,
            "intermediate_size": vision.hidden,
            "num_hidden_layers": vision.layers,
            "num_attention_heads": vision.heads,
            "hidden_act": "quick_gelu",
            "layer_norm_eps": vision.epsilon,
            "projection_dim": text.width,
        },
        "torch_dtype": "float32",
    }


def _preprocessor_config(side: int) -> dict[str, object]:
    return {
        "image_processor_type": "CLIPImageProcessor",
        "processor_class": "LlavaProcessor",
        "do_convert_rgb": True,
        "do_resize": True,
        "size": {"shortest_edge": side},
        "resample": 3,
        "do_center_crop": True,
        "crop_size": {"height": side, "width": side},
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": [MEAN] * 3,
        "image_std": [DEVIATION] * 3,
    }


def llava_weights(reader: Reader) -> dict[str, torch.Tensor]:
    """By the names of transformers' LlavaForConditionalGeneration."""
    places = {
        "norm1": "layer_norm1",
        "query": "self_attn.q_proj",
        "key": "self_attn.k_proj",
        "value": "self_attn.v_proj",
        "output": "self_attn.out_proj",
        "norm2": "layer_norm2",
        "up": "mlp.fc1",
        "down": "mlp.fc2",
    }
    tower = "model.vision_tower"
    found = {
        f"{tower}.embeddings.patch_embedding.weight": reader.vision.patch_embedding.weight,
        f"{tower}.embeddings.class_embedding": reader.vision.class_embedding,
        f"{tower}.embeddings.position_embedding.weight": reader.vision.position_embedding,
        # Not used: the layer before the last norm is read.
        f"{tower}.post_layernorm.weight": torch.ones(reader.vision.shape.width),
        f"{tower}.post_layernorm.bias": torch.zeros(reader.vision.shape.width),
    }
    for name, weight in reader.vision.norm.state_dict().items():
        found[f"{tower}.pre_layrnorm.{name}"] = weight
    for at, layer in enumerate(reader.vision.layers):
        for name, weight in layer.state_dict().items():
            part, kind = name.split(".")
            found[f"{tower}.encoder.layers.{at}.{places[part]}.{kind}"] = weight
    for at, projector in ((1, reader.projector1), (2, reader.projector2)):
        for kind, weight in projector.state_dict().items():
            found[f"model.multi_modal_projector.linear_{at}.{kind}"] = weight
    for name, weight in llama_weights(reader.text).items():
        found[f"model.language_model.{name.removeprefix('model.')}"] = weight
    return {name: weight.detach().contiguous() for name, weight in found.items()}
