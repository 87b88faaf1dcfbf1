"""A finished model's directory, as transformers, transformers.js and Darkroom read it."""

import json
import shutil
from pathlib import Path

import onnx
from safetensors.torch import save_file
from tokenizers import Tokenizer

from train_writer.graph import build_graph
from train_writer.model import Network
from train_writer.recipe import Recipe
from train_writer.tokenizer import BEGIN, END, MASK, PAD, write_tokenizer

_LONGEST_ANSWER = 24


def export_model(result: Path, network: Network, tokenizer: Tokenizer, recipe: Recipe, is_causal: bool) -> None:
    """Writes the directory, whole or not at all.

    Args:
        result: the directory.
        network: with the weights.
        tokenizer: of both models.
        recipe: of the run.
        is_causal: a writer, token by token; else block diffusion.
    """
    partial = result.with_name(f"{result.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    (partial / "onnx").mkdir(parents=True)
    for is_int8, name in ((False, "model.onnx"), (True, "model_int8.onnx")):
        onnx.save(build_graph(network, is_causal, is_int8), partial / "onnx" / name)
    ends = {"bos_token_id": BEGIN, "eos_token_id": END, "pad_token_id": PAD}
    generation = {**ends, "do_sample": False, "max_new_tokens": _LONGEST_ANSWER}
    config = _config(network, recipe) | ends
    if is_causal:
        config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", **config}
        save_file(llama_weights(network), partial / "model.safetensors", metadata={"format": "pt"})
    else:
        block = {"mask_token_id": MASK, "confidence_threshold": recipe.confidence}
        architecture = {"architectures": ["BlockDiffusionForCausalLM"], "model_type": "block_diffusion"}
        config = {**architecture, **config, "block_size": recipe.block, **block}
        generation |= {**block, "block_length": recipe.block, "remasking_strategy": "low_confidence_dynamic"}
    (partial / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    (partial / "generation_config.json").write_text(json.dumps(generation, indent=2) + "\n")
    write_tokenizer(tokenizer, partial, recipe.context)
    shutil.rmtree(result, ignore_errors=True)
    partial.rename(result)


def _config(network: Network, recipe: Recipe) -> dict[str, object]:
    shape = network.shape
    return {
        "vocab_size": shape.vocabulary,
        "hidden_size": shape.width,
        "intermediate_size": shape.hidden,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.key_heads,
        "head_dim": shape.head_width,
        "hidden_act": "silu",
        "max_position_embeddings": recipe.context,
        "initializer_range": 0.02,
        "rms_norm_eps": shape.epsilon,
        "rope_theta": shape.theta,
        "rope_scaling": None,
        "attention_bias": False,
        "attention_dropout": 0.0,
        "mlp_bias": False,
        "tie_word_embeddings": True,
        "use_cache": True,
        "torch_dtype": "float32",
    }


def llama_weights(network: Network) -> dict:
    """By the names of transformers' LlamaForCausalLM."""
    places = {
        "attention_norm": "input_layernorm.weight",
        "query.weight": "self_attn.q_proj.weight",
        "key.weight": "self_attn.k_proj.weight",
        "value.weight": "self_attn.v_proj.weight",
        "output.weight": "self_attn.o_proj.weight",
        "hidden_norm": "post_attention_layernorm.weight",
        "gate.weight": "mlp.gate_proj.weight",
        "up.weight": "mlp.up_proj.weight",
        "down.weight": "mlp.down_proj.weight",
    }
    found = {}
    for name, weight in network.state_dict().items():
        if name.startswith("layers."):
            _, at, rest = name.split(".", 2)
            found[f"model.layers.{at}.{places[rest]}"] = weight
        else:
            found[{"embedding.weight": "model.embed_tokens.weight", "norm": "model.norm.weight"}[name]] = weight
    return {name: weight.contiguous() for name, weight in found.items()}
