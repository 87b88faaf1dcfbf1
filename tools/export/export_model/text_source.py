"""What a text model is made of: a directory as `save_pretrained` writes it, or a GGUF file. transformers reads both."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import torch
from gguf import GGUFReader
from tokenizers import decoders, pre_tokenizers, processors
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, GenerationConfig, PreTrainedTokenizerFast
from transformers.modeling_utils import PreTrainedModel

FAMILIES = ("llama", "qwen2", "qwen3", "gemma3_text", "phi", "phi3")
"""`model_type` of those that Darkroom serves: libs/language/src/model/text-model-config.ts."""
_FIXED_ROPES = ("default", "linear", "llama3")
"""Angles that depend on the position alone: those of `dynamic` and `longrope` change with the length of the text."""
_COPIED = ("README*", "LICEN[CS]E*", "NOTICE*")
_SPLITS = {
    "smollm": pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    ),
}
"""By `tokenizer.ggml.pre`, how text is split before it is made into tokens."""


@dataclass(frozen=True)
class TextSource:
    """A model that can be exported, and its tokenizer."""

    path: Path
    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerFast


def read_text_source(path: Path) -> TextSource:
    """Loads the model in fp32.

    Raises:
        SystemExit: it is of another family, or cannot be read. The message names what is wrong.
    """
    if not path.exists():
        raise SystemExit(f"{path} is not there")
    names = {"pretrained_model_name_or_path": path, "local_files_only": True}
    if path.is_file():
        names = {"pretrained_model_name_or_path": path.parent, "gguf_file": path.name, "local_files_only": True}
    try:
        config = AutoConfig.from_pretrained(**names)
        _check_family(config)
        model = AutoModelForCausalLM.from_pretrained(**names, dtype=torch.float32, attn_implementation="eager").eval()
        tokenizer = AutoTokenizer.from_pretrained(**names)
    except (OSError, ValueError, KeyError) as error:
        raise SystemExit(f"{path}: {error}") from error
    if path.is_file():
        tokenizer = _read_gguf_tokenizer(path, model, tokenizer)
    if not isinstance(tokenizer, PreTrainedTokenizerFast):
        raise SystemExit(f"{path}: {type(tokenizer).__name__} has no tokenizer.json, and none can be made of it")
    return TextSource(path, model, tokenizer)


def write_text_files(source: TextSource, target: Path) -> None:
    """config.json, generation_config.json, the tokenizer's files with the chat template; what is said of the model."""
    config = source.model.config.to_diff_dict()
    # The graph's own: a table may have more rows than the configuration says.
    config["vocab_size"] = source.model.get_output_embeddings().weight.shape[0]
    for key in ("_name_or_path", "_model_name_or_path", "quantization_config"):
        config.pop(key, None)
    (target / "config.json").write_text(f"{json.dumps(config, indent=2, sort_keys=True)}\n")
    source.model.generation_config.save_pretrained(target)
    # The template within tokenizer_config.json, where older readers look for it.
    source.tokenizer.save_pretrained(target, save_jinja_files=False)
    folder = source.path if source.path.is_dir() else source.path.parent
    for pattern in _COPIED:
        for file in folder.glob(pattern):
            shutil.copy(file, target / file.name)


def _check_family(config: AutoConfig) -> None:
    if config.model_type not in FAMILIES:
        raise SystemExit(f"model_type is {config.model_type!r}, expected one of {', '.join(FAMILIES)}")
    scaling = getattr(config, "rope_scaling", None) or {}
    rope = scaling.get("rope_type", scaling.get("type", "default"))
    if rope not in _FIXED_ROPES:
        raise SystemExit(f"rope_scaling: rope_type is {rope!r}, expected one of {', '.join(_FIXED_ROPES)}")


def _read_gguf_tokenizer(
    file: Path, model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast
) -> PreTrainedTokenizerFast:
    """The tokenizer as the file says it is; the model is told which tokens begin and end a text.

    transformers takes each tokenizer of a llama for SentencePiece's, and its own word for what ends a text.
    """
    fields = GGUFReader(file).fields

    def said(name: str) -> object:
        field = fields.get(f"tokenizer.ggml.{name}")
        return None if field is None else field.contents()

    ids = {"bos": said("bos_token_id"), "eos": said("eos_token_id"), "pad": said("padding_token_id")}
    for name, token in ids.items():
        setattr(model.config, f"{name}_token_id", token)
    model.generation_config = GenerationConfig(**{f"{name}_token_id": token for name, token in ids.items()})
    if model.config.model_type != "llama" or said("model") != "gpt2":
        return tokenizer
    if said("pre") not in _SPLITS:
        raise SystemExit(f"{file}: tokenizer.ggml.pre is {said('pre')!r}, expected one of {', '.join(_SPLITS)}")
    backend = tokenizer.backend_tokenizer
    backend.pre_tokenizer = _SPLITS[said("pre")]
    backend.decoder = decoders.ByteLevel()
    if not said("add_bos_token"):
        backend.post_processor = processors.ByteLevel(trim_offsets=False)
    tokens = {
        f"{name}_token": tokenizer.convert_ids_to_tokens(token) for name, token in ids.items() if token is not None
    }
    return PreTrainedTokenizerFast(tokenizer_object=backend, chat_template=tokenizer.chat_template, **tokens)
