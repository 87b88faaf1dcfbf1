"""Records what Python's tokenizers encode and decode with the embedded writer's tokenizer, and with a small one of
SentencePiece's kind that falls back to bytes; and what transformers renders of chats with well-known kinds of templates.

    pip install transformers==5.23.0 tokenizers==0.23.3
    python tools/golden/record-text-codec.py
"""

import json
import pathlib

import tokenizers
import transformers
from tokenizers import AddedToken, Tokenizer, decoders, normalizers
from tokenizers.models import BPE

ROOT = pathlib.Path(__file__).resolve().parents[2]
WRITER = ROOT / "models/emoji-writer"
VECTORS = ROOT / "tools/golden/vectors/text-codec.json"
TEXTS = [
    "a birthday cake on a pink background",
    "  two  spaces\tand a tab\n\nlines ",
    "👩‍👩‍👧 family 🇩🇪 flag ❤️ 👍🏽",
    "漢字とカタカナ、ひらがな",
    "한국어 नमस्ते مرحبا",
    "café naïf e\u0301 Å",
    "😀😀😀",
    "<|im_start|>user\nhi<|im_end|>\n",
    "it's 3.14159 — “quoted” … £5",
    "\u0000\u0007\u001b control",
    "𐍈 𝔘𝔫𝔦",
    "",
    " ",
]
CHATML = json.loads((WRITER / "tokenizer_config.json").read_text())["chat_template"]
STRICT = (
    "{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
    "{{ bos_token }}{% for message in messages %}"
    "{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}"
    "{% set role = 'model' if message['role'] == 'assistant' else message['role'] %}"
    "{{ '<start_of_turn>' + role + '\n' + message['content'] | trim + '<end_of_turn>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{'<start_of_turn>model\n'}}{% endif %}"
)
SILENT = (
    "{% for message in messages %}\n"
    "    {% if message.role == 'user' %}\n[INST] {{ message.content }} [/INST]\n"
    "    {% elif message.role == 'assistant' %}\n{{ message.content }}{{ eos_token }}\n    {% endif %}\n{% endfor %}"
)
TOOLS = (
    "{%- if tools %}\n    {{- '<|im_start|>system\\n# Tools\\n' }}\n    {%- for tool in tools %}\n"
    '        {{- "\\n" }}\n        {{- tool | tojson }}\n    {%- endfor %}\n    {{- "<|im_end|>\\n" }}\n{%- endif %}\n'
    "{%- for message in messages %}\n    {{- '<|im_start|>' + message.role }}\n"
    "    {%- if message.content %}\n        {{- '\\n' + message.content }}\n    {%- endif %}\n"
    "    {%- if message.tool_calls %}\n    {%- for tool_call in message.tool_calls %}\n"
    "        {{- '\\n<tool_call>\\n{\"name\": \"' + tool_call.function.name + '\", \"arguments\": ' }}\n"
    "        {{- tool_call.function.arguments | tojson }}\n        {{- '}\\n</tool_call>' }}\n    {%- endfor %}\n    {%- endif %}\n"
    "    {{- '<|im_end|>\\n' }}\n{%- endfor %}\n"
    "{%- if add_generation_prompt %}\n    {{- '<|im_start|>assistant\\n' }}\n{%- endif %}\n"
)
USER = {"role": "user", "content": "make it blue"}
ANSWER = {"role": "assistant", "content": "a blue cake"}
TOOL = {
    "type": "function",
    "function": {
        "name": "draw",
        "description": "Draws <it> & more",
        "parameters": {"type": "object", "properties": {"prompt": {"type": "string"}}, "required": ["prompt"]},
    },
}
CALL = {
    "role": "assistant",
    "content": "",
    "tool_calls": [{"id": "1", "type": "function", "function": {"name": "draw", "arguments": {"prompt": "a cat"}}}],
}
RESULT = {"role": "tool", "content": "done", "tool_call_id": "1"}
CHATS = [
    ("chatml", CHATML, [USER], None),
    ("chatml", CHATML, [{"role": "system", "content": "Be brief."}, USER, ANSWER, {"role": "user", "content": "bigger"}], None),
    ("strict", STRICT, [USER, ANSWER, {"role": "user", "content": "  bigger  "}], None),
    ("strict", STRICT, [{"role": "system", "content": "Be brief."}, USER], None),
    ("strict", STRICT, [USER, USER], None),
    ("silent", SILENT, [USER, ANSWER, USER], None),
    ("tools", TOOLS, [USER], None),
    ("tools", TOOLS, [USER, CALL, RESULT], [TOOL]),
]


def with_bytes():
    """SentencePiece's kind: `▁` for spaces, and a token for each byte that no other token has."""
    vocabulary = {"<unk>": 0, "<s>": 1, "</s>": 2}
    for byte in range(256):
        vocabulary[f"<0x{byte:02X}>"] = len(vocabulary)
    for piece in ["▁", *"abcdefghiklnoprtuy", "▁a", "▁c", "ak", "▁ca", "▁cak", "▁cake", "漢"]:
        vocabulary[piece] = len(vocabulary)
    merges = [("▁", "a"), ("▁", "c"), ("a", "k"), ("▁c", "a"), ("▁c", "ak"), ("▁cak", "e")]
    tokenizer = Tokenizer(BPE(vocabulary, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in ("<unk>", "<s>", "</s>")])
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    return tokenizer


def cases_of(tokenizer):
    cases = []
    for text in TEXTS:
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        cases.append({"text": text, "ids": ids, "decoded": tokenizer.decode(ids, skip_special_tokens=True)})
    return cases


def render(template, messages, tools):
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_file(str(WRITER / "tokenizer.json")),
        bos_token="<|im_start|>",
        eos_token="<|im_end|>",
    )
    try:
        text = fast.apply_chat_template(
            messages, tools=tools, chat_template=template, add_generation_prompt=True, tokenize=False
        )
        return {"text": text}
    except Exception as error:
        return {"error": str(error)}


def main():
    fallback = with_bytes()
    record = {
        "versions": {"tokenizers": tokenizers.__version__, "transformers": transformers.__version__},
        "byteLevel": cases_of(Tokenizer.from_file(str(WRITER / "tokenizer.json"))),
        "byteFallback": {"tokenizer": json.loads(fallback.to_str()), "cases": cases_of(fallback)},
        "chats": [
            {"name": name, "template": template, "messages": messages, "tools": tools, **render(template, messages, tools)}
            for name, template, messages, tools in CHATS
        ],
    }
    VECTORS.write_text(json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n")


main()
