"""Tiny models of random weights, one of each family, and what Darkroom says of them."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from tokenizers import Tokenizer
from transformers import (
    AutoModelForCausalLM,
    Gemma3TextConfig,
    LlamaConfig,
    Phi3Config,
    PhiConfig,
    PretrainedConfig,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen3Config,
)

from export_model.products import turn_inputs, turn_outputs

HERE = Path(__file__).resolve().parent
_WRITER = HERE.parents[2] / "models/emoji-writer"
_SIZES = {
    "vocab_size": 2048,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}
_KINDS = ["sliding_attention", "full_attention", "sliding_attention"]
FAMILIES = {
    "llama": lambda: LlamaConfig(**_SIZES, tie_word_embeddings=True),
    "llama3": lambda: LlamaConfig(
        **_SIZES,
        rope_scaling={
            "rope_type": "llama3",
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 64,
        },
    ),
    "qwen2": lambda: Qwen2Config(**_SIZES),
    "qwen3": lambda: Qwen3Config(**_SIZES, head_dim=32),
    "gemma3_text": lambda: Gemma3TextConfig(**_SIZES, head_dim=32, sliding_window=16, layer_types=_KINDS),
    # As many heads of keys as of queries.
    "phi": lambda: PhiConfig(**{**_SIZES, "num_key_value_heads": 4}),
    "phi3": lambda: Phi3Config(**_SIZES, sliding_window=32),
}


def save(config: PretrainedConfig, directory: Path) -> None:
    torch.manual_seed(0)
    AutoModelForCausalLM.from_config(config).save_pretrained(directory)
    tokenizer = Tokenizer.from_file(str(_WRITER / "tokenizer.json"))
    said = json.loads((_WRITER / "tokenizer_config.json").read_text())
    tokens = {name: said[name] for name in ("bos_token", "eos_token", "pad_token", "chat_template")}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **tokens).save_pretrained(directory)


def run(program: list[str], **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(program, check=False, capture_output=True, text=True, env={**os.environ, **environment})


def export(*words: object) -> subprocess.CompletedProcess:
    return run([sys.executable, str(HERE.parent / "text.py"), *map(str, words)])


@pytest.mark.parametrize("name", FAMILIES)
def test_darkroom_writes_with_each_dtype_whoever_is_beside(tmp_path: Path, name: str) -> None:
    save(FAMILIES[name](), tmp_path / "checkpoint")
    done = export(tmp_path / "checkpoint", tmp_path / "tiny")
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint", "tiny"]
    assert re.search(r"^deterministic +yes", done.stdout, re.MULTILINE), done.stdout
    for dtype in ("fp32", "q4"):
        words = ["node", str(HERE.parents[2] / "tools/model.mjs"), "check", str(tmp_path / "tiny")]
        checked = run(words, MODEL_DTYPE=dtype)
        assert re.search(r"^deterministic +yes", checked.stdout, re.MULTILINE), checked.stdout + checked.stderr


@pytest.mark.parametrize("name", ["qwen3", "gemma3_text"])
def test_gives_the_last_logits_that_are_asked_for(tmp_path: Path, name: str) -> None:
    save(FAMILIES[name](), tmp_path / "checkpoint")
    assert export(tmp_path / "checkpoint", tmp_path / "tiny").returncode == 0
    session = onnxruntime.InferenceSession(str(tmp_path / "tiny/onnx/model.onnx"))
    ids = np.arange(7)[None] + 5
    feeds = {"input_ids": ids, "attention_mask": np.ones_like(ids), "position_ids": np.arange(7)[None]}
    past = {value.name: value.shape for value in session.get_inputs() if value.name.startswith("past")}
    feeds |= {name: np.zeros((1, shape[1], 0, shape[3]), np.float32) for name, shape in past.items()}
    # GroupQueryAttention counts positions itself.
    feeds = {value.name: feeds[value.name] for value in session.get_inputs() if value.name in feeds}
    logits = [session.run(["logits"], {**feeds, "num_logits_to_keep": np.array(keep)})[0] for keep in (0, 3)]
    assert logits[0].shape == (1, 7, 2048)
    assert np.abs(logits[0][:, 4:] - logits[1]).max() < 1e-5


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "mamba"}, "model_type is 'mamba', expected one of llama, qwen2"),
        ({"rope_scaling": {"rope_type": "dynamic", "factor": 2.0}}, "rope_type is 'dynamic', expected one of default"),
    ],
)
def test_refuses_before_anything_is_written(tmp_path: Path, changes: dict, message: str) -> None:
    save(FAMILIES["llama"](), tmp_path / "checkpoint")
    file = tmp_path / "checkpoint/config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))
    done = export(tmp_path / "checkpoint", tmp_path / "tiny")
    assert done.returncode == 1
    assert message in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint"]


def test_what_is_turned_before_and_after_attention_gives_the_same_products() -> None:
    random = np.random.default_rng(0)
    values, bias, back = random.normal(size=(12, 5)), random.normal(size=12), random.normal(size=(7, 12))
    assert np.allclose(turn_inputs(back, 6) @ turn_outputs(values, 6), back @ values)
    assert np.allclose(turn_inputs(back, 6) @ turn_outputs(bias, 6), back @ bias)
