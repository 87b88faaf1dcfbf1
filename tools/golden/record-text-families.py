"""Makes a tiny random model of each family of text but llama, exports it as tools/export does, and records what transformers writes
with the same weights. record-tiny-text.py has llama.

    . tools/export/.venv/bin/activate    # tools/export/README.md
    python tools/golden/record-text-families.py
"""

import json
import pathlib
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/export"))

import numpy as np  # noqa: E402
import torch  # noqa: E402
from export_model.decoder import export_decoder, tie_table  # noqa: E402
from export_model.group_query import is_llama_like, write_group_query  # noqa: E402
from export_model.products import FloatProducts  # noqa: E402
from transformers import (  # noqa: E402
    AutoModelForCausalLM,
    Gemma3TextConfig,
    Phi3Config,
    PhiConfig,
    Qwen2Config,
    Qwen3Config,
)

TEXT = ROOT / "tools/golden/vectors/text"
TARGET = TEXT / "families"
VOCABULARY, TOKENS = 64, 24
SIZES = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "max_position_embeddings": 256,
    "bos_token_id": None,
    "eos_token_id": 0,
    "pad_token_id": 0,
    "initializer_range": 0.35,
    "tie_word_embeddings": True,
}
# Windows that are shorter than the longest text.
FAMILIES = {
    "qwen2": Qwen2Config(**SIZES),
    "qwen3": Qwen3Config(**SIZES, head_dim=16),
    "gemma3_text": Gemma3TextConfig(
        **{**SIZES, "tie_word_embeddings": False},
        head_dim=16,
        sliding_window=16,
        layer_types=["sliding_attention", "full_attention"],
    ),
    "phi": PhiConfig(**{**SIZES, "num_key_value_heads": 2, "tie_word_embeddings": False}),
    "phi3": Phi3Config(**SIZES, sliding_window=32),
}


def main():
    torch.set_num_threads(1)
    recorded = {}
    for name, config in FAMILIES.items():
        torch.manual_seed(7)
        model = AutoModelForCausalLM.from_config(config).eval()
        folder = TARGET / name
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "onnx").mkdir(parents=True)
        graph = folder / "onnx/model.onnx"
        if is_llama_like(model):
            write_group_query(model, graph, FloatProducts())
        else:
            export_decoder(model, graph)
            tie_table(graph)
        shutil.copy(TEXT / "plain/tokenizer.json", folder / "tokenizer.json")
        said = json.loads(config.to_json_string(use_diff=False))
        fields = ("model_type", "head_dim", *SIZES)
        short = {field: said[field] for field in fields if said.get(field) is not None}
        (folder / "config.json").write_text(json.dumps(short, indent=2) + "\n")
        recorded[name] = [write(model, prompt) for prompt in prompts()]
        print(name, graph.stat().st_size, [len(set(case["tokens"])) for case in recorded[name]])
    (TARGET / "greedy.json").write_text(json.dumps(recorded, separators=(",", ":")) + "\n")


def prompts():
    generator = np.random.default_rng(7)
    return [generator.integers(1, VOCABULARY, length).tolist() for length in (1, 5, 40, 90)]


def write(model, prompt):
    ids = torch.tensor([prompt])
    with torch.no_grad():
        out = model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            do_sample=False,
            max_new_tokens=TOKENS,
            eos_token_id=0,
            pad_token_id=0,
        )
    return {"prompt": prompt, "tokens": out[0, len(prompt) :].tolist()}


main()
