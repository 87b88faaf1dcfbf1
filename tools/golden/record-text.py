"""Records what transformers writes with the embedded writer: greedily, on wishes and chats, each alone.

    pip install transformers==5.23.0 torch==2.15.0 onnx==1.23.2
    python tools/golden/record-text.py

The weights are those of the INT8 file that is shipped, multiplied out.
"""

import json
import pathlib

import numpy as np
import onnx
import torch
import transformers
from onnx import numpy_helper
from tokenizers import Tokenizer

ROOT = pathlib.Path(__file__).resolve().parents[2]
WRITER = ROOT / "models/emoji-writer"
VECTORS = ROOT / "tools/golden/vectors/emoji-writer-greedy.json"
WISHES = """something sweet for a birthday party
an animal that lives in the forest
I feel stormy today
draw me a vehicle in teal
Something to eat, but not a fruit
a scary thing on orange
I am so in love!
an instrument for a rock band, purple background
take me to the beach
What flies and is not an animal?
a tiny dog on yellow
my kid loves dinosaurs
we won the championship
something cold
a red rose please, on white
I need an icon for my coffee app
a bird that can talk
unicorn, pink gradient background
hello
surprise me with something blue""".splitlines()
CHATS = [
    ["a birthday cake", "make it blue", "bigger"],
    ["an animal from africa on orange", "something else", "now in navy"],
    ["I feel lucky", "in purple please", "now a cat"],
]


def load():
    graph = onnx.load(str(WRITER / "onnx/model_int8.onnx")).graph
    arrays = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}

    def weight(name):
        if name in arrays:
            return torch.from_numpy(arrays[name].copy())
        return torch.from_numpy(arrays[name + "_q"].astype(np.float32) * arrays[name + "_s"])

    config = transformers.LlamaConfig.from_pretrained(str(WRITER))
    model = transformers.LlamaForCausalLM(config).eval()
    state = {"model.embed_tokens.weight": weight("embed"), "model.norm.weight": weight("norm")}
    state["lm_head.weight"] = state["model.embed_tokens.weight"]
    places = {"q": "self_attn.q_proj", "k": "self_attn.k_proj", "v": "self_attn.v_proj", "o": "self_attn.o_proj"}
    places |= {"gate": "mlp.gate_proj", "up": "mlp.up_proj", "down": "mlp.down_proj"}
    for layer in range(config.num_hidden_layers):
        ours, theirs = f"layers.{layer}.", f"model.layers.{layer}."
        for name, place in places.items():
            state[f"{theirs}{place}.weight"] = weight(ours + name).T
        state[f"{theirs}input_layernorm.weight"] = weight(ours + "norm1")
        state[f"{theirs}post_attention_layernorm.weight"] = weight(ours + "norm2")
    model.load_state_dict(state)
    return model


def main():
    torch.set_num_threads(1)
    model, tokenizer = load(), Tokenizer.from_file(str(WRITER / "tokenizer.json"))
    fast = transformers.PreTrainedTokenizerFast.from_pretrained(str(WRITER))
    cases = []

    def write(messages):
        text = fast.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
        prompt = tokenizer.encode(text, add_special_tokens=False).ids
        with torch.no_grad():
            out = model.generate(torch.tensor([prompt]), do_sample=False, max_new_tokens=24, eos_token_id=2, pad_token_id=0)
        tokens = out[0, len(prompt) :].tolist()
        answer = tokenizer.decode(tokens, skip_special_tokens=True)
        cases.append({"messages": list(messages), "prompt": prompt, "tokens": tokens, "text": answer})
        return answer

    for wish in WISHES:
        write([{"role": "user", "content": wish}])
    for turns in CHATS:
        messages = []
        for turn in turns:
            messages.append({"role": "user", "content": turn})
            messages.append({"role": "assistant", "content": write(messages)})
    versions = {"transformers": transformers.__version__, "torch": torch.__version__.split("+")[0]}
    rows = ",\n".join("  " + json.dumps(case) for case in cases)
    VECTORS.write_text('{"versions": ' + json.dumps(versions) + ', "cases": [\n' + rows + "\n]}\n")


main()
