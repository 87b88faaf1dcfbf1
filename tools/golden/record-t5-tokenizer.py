"""Makes a small tokenizer of T5's kind for the tests, and records what transformers encodes with it.

    pip install transformers==5.23.0 tokenizers==0.23.3 sentencepiece==0.2.0
    python tools/golden/record-t5-tokenizer.py

The tokenizer is that of the recorded Stable Diffusion 3 (record-stable-diffusion-3.py): the structure of the published
tokenizer.json, SentencePiece's own table of nmt_nfkc, which T5 was trained with, and a vocabulary of a few hundred pieces.
Published files come in two structures, by their age. That transformers (which since version 5 reads of a file its vocabulary
and table only) and both structures agree on every text is checked here.
"""

import io
import json
import pathlib

import sentencepiece
import transformers
from sentencepiece import sentencepiece_model_pb2
from tokenizers import AddedToken, Regex, Tokenizer, decoders, normalizers, pre_tokenizers, processors
from tokenizers.models import Unigram

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGET = ROOT / "tools/golden/vectors/pipelines/stable-diffusion-3/model/tokenizer_3"
VECTORS = ROOT / "tools/golden/vectors/t5-tokenizer.json"
WORDS = ROOT / "models/emoji-sd/tokenizer/vocab.json"
MAX_TOKENS = 24
TEXTS = [
    "",
    " ",
    "a red apple on a white background",
    "A  RED\tApple\non a   White\r\nbackground!  ",
    "\n\n  leading and trailing   ",
    "it's the cat's whiskers, isn't it?",
    "3.14159 and 1,000,000 cats; 50% off",
    "a photo of a cat, 4k, (masterpiece:1.2), [best quality]",
    "une étude à l'été, garçon naïf",
    "une e\u0301tude de\u0301compose\u0301e, n\u0303",
    "ｆｕｌｌ　ｗｉｄｔｈ ＡＢＣ １２３",
    "ﬁne ﬂour ½ cup ™ ① x² Ⅷ",
    "カタカナ ｶﾞｷﾞｸﾞ ひらがな 漢字",
    "한국어 \u1100\u1161\u11a8",
    "नमस्ते दुनिया",
    "مرحبا بالعالم",
    "Привет, мир",
    "☃☃ snow ☃",
    "👍🏽 ok 👩‍👩‍👧 family 🇩🇪 flag ❤️",
    "zero\u200bwidth\u200djoiner\u200cand\ufeffmark",
    "non\u00a0breaking\u2009thin\u3000wide",
    "control\u0000\u0007\u001bcharacters\u007f end",
    "ẛ̣ Å Ω q̣̇ \u0344",
    "tilde ～ and ~ and ∼",
    "an underscore _ and a ▁lower block▁",
    "a cat </s> and more",
    "<pad> <unk> <extra_id_0> <extra_id_99>",
    "<s> </ s> <extra_id_100>",
    "\ud7a3\U0001f600\U00010348",
    "x" * 60,
    "supercalifragilisticexpialidocious",
    "a cat and a dog and " * 12,
    " ".join(["a", "cat"] * 11) + " a",
    " ".join(["a", "cat"] * 11) + " a cat",
]


def train():
    """A SentencePiece model of prompts that are put together from the words of the embedded model."""
    words = [word[:-4] for word in json.loads(WORDS.read_text()) if word.endswith("</w>") and word[:-4].isalpha()]
    sentences = [f"a {words[i]} {words[i + 1]} on a {words[i - 1]} background" for i in range(1, len(words) - 1)]
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences + ["0 1 2 3 4 5 6 7 8 9 . , ; : ! ? ' - ( ) é ü ~ 漢 字 ガ А 👍"] * 20),
        model_writer=model,
        model_type="unigram",
        vocab_size=300,
        character_coverage=1.0,
        normalization_rule_name="nmt_nfkc",
        pad_id=0,
        eos_id=1,
        unk_id=2,
        bos_id=-1,
        num_threads=1,
        minloglevel=2,
    )
    proto = sentencepiece_model_pb2.ModelProto()
    proto.ParseFromString(model.getvalue())
    return proto


def tokenizer_of(proto, *, extra_ids=12, old):
    """`old`: as transformers wrote it until 2023, with words split at white space, and without its last normalizers."""
    pieces = [(piece.piece, round(piece.score, 5)) for piece in proto.pieces]
    pieces += [(f"<extra_id_{i}>", 0.0) for i in range(extra_ids - 1, -1, -1)]
    tokenizer = Tokenizer(Unigram(pieces, unk_id=2, byte_fallback=False))
    charsmap = normalizers.Precompiled(proto.normalizer_spec.precompiled_charsmap)
    metaspace = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always", split=True)
    if old:
        tokenizer.normalizer = charsmap
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), metaspace])
    else:
        strip = normalizers.Strip(left=False, right=True)
        tokenizer.normalizer = normalizers.Sequence([charsmap, strip, normalizers.Replace(Regex(" {2,}"), "▁")])
        tokenizer.pre_tokenizer = metaspace
    tokenizer.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always", split=True)
    special = ["<pad>", "</s>", "<unk>"] + [f"<extra_id_{i}>" for i in range(extra_ids - 1, -1, -1)]
    tokenizer.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in special])
    tokenizer.post_processor = processors.TemplateProcessing(
        single=["$A", "</s>"], pair=["$A", "</s>", "$B", "</s>"], special_tokens=[("</s>", 1)]
    )
    return tokenizer


def padded(ids):
    assert len(ids) == MAX_TOKENS
    while ids[-1] == 0:
        ids = ids[:-1]
    return ids


def main():
    proto = train()
    new, old = tokenizer_of(proto, old=False), tokenizer_of(proto, old=True)
    TARGET.mkdir(parents=True, exist_ok=True)
    definition = json.loads(new.to_str())
    (TARGET / "tokenizer.json").write_text(json.dumps(definition, ensure_ascii=False, separators=(",", ":")) + "\n")
    config = {
        "eos_token": "</s>",
        "extra_ids": 12,
        "model_max_length": 512,
        "pad_token": "<pad>",
        "tokenizer_class": "T5Tokenizer",
        "unk_token": "<unk>",
    }
    (TARGET / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n")
    theirs = transformers.T5TokenizerFast.from_pretrained(str(TARGET))
    cases = []
    for text in TEXTS:
        ids = theirs(text, padding="max_length", max_length=MAX_TOKENS, truncation=True).input_ids
        case = {"text": text, "ids": padded(ids), "cutTokens": max(0, len(theirs(text).input_ids) - MAX_TOKENS)}
        for tokenizer in (new, old):
            tokenizer.enable_truncation(MAX_TOKENS)
            tokenizer.enable_padding(length=MAX_TOKENS, pad_id=0)
            assert padded(tokenizer.encode(text).ids) == case["ids"], text
        cases.append(case)
    versions = {"transformers": transformers.__version__, "sentencepiece": sentencepiece.__version__}
    rows = ",\n".join("  " + json.dumps(case) for case in cases)
    head = f'"versions": {json.dumps(versions)}, "maxTokens": {MAX_TOKENS}'
    VECTORS.write_text("{" + head + ', "cases": [\n' + rows + "\n]}\n")


main()
