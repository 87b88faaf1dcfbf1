"""Records whole runs of diffusers' CogView4Pipeline with tiny models of random weights, for the tests of ours.

    pip install torch==2.15.0 diffusers==0.42.1 transformers==5.23.0 onnx==1.23.2 numpy==2.4.6
    python tools/golden/record-cogview4.py

Recorded with Python 3.11 on the CPU, into vectors/pipelines/cogview4/, as record-pipelines.py describes it, and
vectors/glm-tokenizer.json with ids of texts that are hard to split. Sizes of the models are about those of diffusers'
own tests. The tokenizer is a small one of the structure that GLM-4's is published in: bytes, merged within what the
pattern of tiktoken splits, and two marks before each text.
"""

import copy
import importlib
import json
import pathlib
import shutil
import sys
from unittest import mock

import torch
import transformers
from diffusers import AutoencoderKL, CogView4Pipeline, CogView4Transformer2DModel, FlowMatchEulerDiscreteScheduler
from diffusers.models.embeddings import apply_rotary_emb
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from torch.nn.functional import scaled_dot_product_attention
from transformers import GlmConfig, GlmModel, PreTrainedTokenizerFast

sys.path.insert(0, str(pathlib.Path(__file__).parent))
shared = importlib.import_module("record-pipelines")

NAME = "cogview4"
TOKENIZER_VECTORS = shared.ROOT / "tools/golden/vectors/glm-tokenizer.json"
PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
SPECIAL_TOKENS = ["<|endoftext|>", "[MASK]", "[gMASK]", "[sMASK]", "<sop>", "<eop>"]
SPECIAL_TOKENS += ["<|system|>", "<|user|>", "<|assistant|>", "<|observation|>"]
TOKENS = 600
# Embeddings that no token has, as many as in GLM-4.
SPARE = 209
# What CogView4Pipeline cuts at by default.
MAX_TOKENS = 1024
LONG_PROMPT = "a very long story of a red apple 🍎🌳, " * 100

# The vocabulary is made from these, and the tokenizer is checked with them.
TEXTS = [
    "",
    " ",
    "a red apple on a white background",
    "A Red APPLE, on a white Background!",
    "a house",
    "一只红色的苹果放在白色的背景上，写实风格。",
    "日本語のテキストと 한국어 텍스트 и русский текст",
    "שלום עולם, مرحبا بالعالم, नमस्ते दुनिया, สวัสดีชาวโลก",
    "emoji 😀👍🏽 👨‍👩‍👧‍👦 🇨🇳 and ☃️ too",
    "I'm sure it's what they'd say, we've we'll WE'LL I'M don't DON'T 'tis ’s",
    "numbers 1 12 123 1234 1234567890 ٣٤٥ ½ ² Ⅷ 3.14159",
    "many     spaces   and\ttabs\t\t and   the end   ",
    "   before it",
    "lines\nand\r\nlines\n\n\n   \n  indented\r\rold",
    "unusual spaces: \u00a0 \u2003 \u3000 \u200b \ufeff \u0085 \u2028 end",
    "e\u0301 and é are kept apart, ﬁ and Å Å too",
    "code: if (x >= 10) { return `${y}_z`; } // #!/usr/bin/env",
    "<sop> [gMASK] <|user|>hello<|assistant|> <|nobody|> [MASK]",
    "null \u0000 and control \u0007\u001b[0m",
    "ſharp KELVIN sign, 'ſ and 'K",
    "Ω≈ç√∫˜µ≤≥÷ — “quoted” … ‽",
    "𝒜𝒷𝒸 𠜎𠜱 ancient 𐎀𐎁",
]


def glm_tokenizer(folder):
    """As convert_glm_weights_to_hf.py of transformers leaves it."""
    tokenizer = Tokenizer(models.BPE(ignore_merges=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PATTERN), behavior="isolated", invert=False),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(
        vocab_size=TOKENS - len(SPECIAL_TOKENS), initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(TEXTS * 2, trainer)
    tokenizer.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in SPECIAL_TOKENS])
    marks = ["[gMASK]", "<sop>"]
    tokenizer.post_processor = processors.Sequence(
        [
            processors.ByteLevel(trim_offsets=False),
            processors.TemplateProcessing(
                single="[gMASK]:0 <sop>:0 $A:0",
                pair="[gMASK]:0 <sop>:0 $A:0 $B:1",
                special_tokens=[(mark, tokenizer.token_to_id(mark)) for mark in marks],
            ),
        ]
    )
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<|endoftext|>",
        pad_token="<|endoftext|>",
        padding_side="left",
        model_max_length=128000,
        clean_up_tokenization_spaces=False,
        model_input_names=["input_ids", "attention_mask"],
    )
    fast.save_pretrained(folder)
    return PreTrainedTokenizerFast.from_pretrained(str(folder))


def record_tokenizer(tokenizer):
    """What CogView4Pipeline gives the text encoder, and how much it left out."""
    cases = []
    for text in [*TEXTS, LONG_PROMPT]:
        whole = tokenizer(text).input_ids
        ids = tokenizer(text, padding="longest", max_length=MAX_TOKENS, truncation=True).input_ids
        cut = len(whole) - len(ids)
        ids = [tokenizer.pad_token_id] * (-len(ids) % 16) + ids
        cases.append({"text": text, "ids": ids, "cutTokens": cut})
    rows = ",\n".join("  " + json.dumps(case) for case in cases)
    versions = json.dumps({"transformers": transformers.__version__})
    TOKENIZER_VECTORS.write_text('{"versions": ' + versions + ', "cases": [\n' + rows + "\n]}\n")


def glm(pad_id):
    config = GlmConfig(
        hidden_size=32,
        intermediate_size=24,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        vocab_size=TOKENS + SPARE,
        pad_token_id=pad_id,
        eos_token_id=pad_id,
        max_position_embeddings=2048,
        attn_implementation="eager",
    )
    model = shared.seeded(lambda: GlmModel(config), 8)
    with torch.no_grad():
        # Fresh models have zeros there; those of a trained one are like all others, and the padding is attended to.
        model.embed_tokens.weight[pad_id] = model.embed_tokens.weight[0] + 0.1
    return model


def transformer():
    create = lambda: CogView4Transformer2DModel(
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
    return shared.seeded(create, 1.5)


def vae():
    create = lambda: AutoencoderKL(
        block_out_channels=[4, 4, 8, 8],
        down_block_types=["DownEncoderBlock2D"] * 4,
        up_block_types=["UpDecoderBlock2D"] * 4,
        layers_per_block=1,
        latent_channels=16,
        norm_num_groups=2,
        sample_size=64,
        scaling_factor=0.8,
        # CogView4Pipeline does not read it.
        shift_factor=0.3,
        use_quant_conv=False,
        use_post_quant_conv=False,
    )
    return shared.seeded(create, 1.3)


def export_glm(folder, model):
    """One output only, named as Optimum names hidden states: nothing reads the others, nor the last layer."""
    layer = model.config.num_hidden_layers - 1

    def forward(model, ids):
        # The mask that the model makes when it is given none, without the search for packed texts, which ONNX has no
        # operator for.
        positions = torch.arange(ids.shape[1])
        later = positions[None, :] > positions[:, None]
        mask = torch.where(later, torch.finfo(torch.float32).min, 0.0)[None, None]
        states = model(ids, attention_mask=mask, use_cache=False, output_hidden_states=True).hidden_states
        return states[layer]

    ids = torch.zeros((2, 32), dtype=torch.int64)
    output = f"hidden_states.{layer}"
    # That of the exporter wants a length that is known.
    repeated = lambda values, times, dim: torch.stack([values] * times, dim).flatten(dim - 1)
    with mock.patch.object(torch.Tensor, "repeat_interleave", repeated):
        shared.export(folder, model, forward, {"input_ids": (ids, shared.TOKENS)}, [output])


class ExportedAttention:
    """diffusers' CogView4AttnProcessor, but for its assignments to slices, which keep the length they were traced with."""

    def __call__(self, attn, hidden_states, encoder_hidden_states, attention_mask=None, image_rotary_emb=None):
        texts = encoder_hidden_states.shape[1]
        joined = torch.cat([encoder_hidden_states, hidden_states], dim=1)
        heads = lambda project: project(joined).unflatten(2, (attn.heads, -1)).transpose(1, 2)
        rotated = lambda part: apply_rotary_emb(part[:, :, texts:], image_rotary_emb, use_real_unbind_dim=-2)
        turned = lambda part: torch.cat([part[:, :, :texts], rotated(part)], dim=2)
        query, key = turned(attn.norm_q(heads(attn.to_q))), turned(attn.norm_k(heads(attn.to_k)))
        values = scaled_dot_product_attention(query, key, heads(attn.to_v)).transpose(1, 2).flatten(2, 3)
        output = attn.to_out[0](values)
        return output[:, texts:], output[:, :texts]


def export_transformer(folder, original):
    model = copy.deepcopy(original)
    for block in model.transformer_blocks:
        block.attn1.set_processor(ExportedAttention())
    config = model.config
    sizes = {name: (torch.rand(2, 2), shared.ROWS) for name in ("original_size", "target_size", "crop_coords")}
    inputs = {
        "hidden_states": (torch.randn(2, config.in_channels, 16, 16), shared.PIXELS),
        "encoder_hidden_states": (torch.randn(2, 48, config.text_embed_dim), shared.TOKENS),
        "timestep": (torch.tensor([5.0, 7.0]), shared.ROWS),
        **sizes,
    }
    forward = lambda model, *given: model(*given, return_dict=False)[0]
    shared.export(folder, model, forward, inputs, ["out_hidden_states"])


def export_vae(folder, model):
    inputs = {"latent_sample": (torch.randn(2, model.config.latent_channels, 16, 16), shared.PIXELS)}
    shared.export(folder, model, lambda vae, latents: vae.decode(latents).sample, inputs, ["sample"])


def main():
    folder = shared.TARGET / NAME / "model"
    shutil.rmtree(folder, ignore_errors=True)
    # As that of CogView4-6B.
    scheduler = FlowMatchEulerDiscreteScheduler(
        base_shift=0.25, max_shift=0.75, base_image_seq_len=256, use_dynamic_shifting=True, time_shift_type="linear"
    )
    scheduler.save_pretrained(folder / "scheduler")
    (folder / "model_index.json").write_text(json.dumps({"_class_name": "CogView4Pipeline"}, indent=2) + "\n")
    tokenizer = glm_tokenizer(folder / "tokenizer")
    record_tokenizer(tokenizer)
    parts = {"text_encoder": glm(tokenizer.pad_token_id), "transformer": transformer(), "vae": vae()}
    export_glm(folder / "text_encoder", parts["text_encoder"])
    export_transformer(folder / "transformer", parts["transformer"])
    export_vae(folder / "vae_decoder", parts["vae"])
    pipeline = CogView4Pipeline(**parts, tokenizer=tokenizer, scheduler=scheduler)
    shared.SCHEDULERS["flow_match_euler"] = FlowMatchEulerDiscreteScheduler
    usual = {"scheduler": "flow_match_euler"}
    shared.record(
        NAME,
        pipeline,
        [
            # Texts of different lengths.
            {**usual, "numInferenceSteps": 5, "guidanceScale": 5, "width": 64, "height": 64, "negativePrompt": TEXTS[5]},
            {**usual, "numInferenceSteps": 7, "guidanceScale": 3.5, "prompt": TEXTS[5]},
            {**usual, "numInferenceSteps": 3, "guidanceScale": 1, "width": 48, "height": 80, "seed": 1},
            {**usual, "numInferenceSteps": 4, "guidanceScale": 7, "width": 128, "height": 32, "prompt": TEXTS[8]},
            {**usual, "numInferenceSteps": 2, "guidanceScale": 5, "prompt": LONG_PROMPT},
            {**usual, "numInferenceSteps": 1, "guidanceScale": 0, "prompt": "a blue bird"},
        ],
    )


if __name__ == "__main__":
    main()
