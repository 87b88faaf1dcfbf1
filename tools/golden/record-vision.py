"""Makes two tiny random models that read images, in the layout of transformers.js: LLaVA and Idefics 3 (SmolVLM's). Records what
transformers makes of images with the same weights: the prompt's ids, the images' embeddings and the text.

    pip install -r tools/train-emoji/requirements.txt
    python tools/golden/record-vision.py
"""

import hashlib
import json
import pathlib
import shutil
import sys

import numpy as np
import onnx
import torch
import transformers
from onnx import TensorProto, helper
from PIL import Image
from tokenizers import AddedToken, Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGET = ROOT / "tools/golden/vectors/vision"
sys.path += [str(ROOT / f"tools/train-{name}") for name in ("emoji", "writer", "reader")]

from train_reader.export import export_model, llava_weights, model_config  # noqa: E402
from train_reader.graph import TransformerShape, build_embedding_graph, write_layer, write_linear, write_norm, write_patches  # noqa: E402
from train_reader.model import Reader, VisionShape  # noqa: E402
from train_reader.recipe import Recipe  # noqa: E402
from train_reader.tokenizer import TEMPLATE, train_tokenizer  # noqa: E402
from train_writer.graph import Graph, build_graph  # noqa: E402
from train_writer.model import Network, Shape  # noqa: E402

SIZES = [(40, 30), (33, 100), (20, 20), (150, 64)]
"""Width and height of the images."""


def draw_images():
    TARGET.mkdir(parents=True, exist_ok=True)
    names = []
    for at, (width, height) in enumerate(SIZES):
        x, y = np.meshgrid(np.arange(width), np.arange(height))
        noise = np.random.default_rng(at).integers(0, 40, (height, width, 3))
        waves = np.stack([np.sin((x * (c + 1) + y * (at + 1)) / 9) * 100 + 110 for c in range(3)], -1)
        Image.fromarray((waves + noise).clip(0, 255).astype(np.uint8)).save(TARGET / f"image-{at}.png")
        names.append(f"image-{at}.png")
    return names


def write_resized(names):
    rows = []
    for at, name in enumerate(names):
        image = Image.open(TARGET / name).convert("RGB")
        for width, height in [(32, 32), (128, 96), (20, 50), (image.width, 41), (41, image.height), (300, 7)]:
            for kind in ("bilinear", "bicubic", "lanczos"):
                data = image.resize((width, height), Image.Resampling[kind.upper()]).tobytes()
                rows.append([at, width, height, kind, hashlib.sha256(data).hexdigest()])
    (TARGET / "resized.json").write_text("[\n" + ",\n".join("  " + json.dumps(row) for row in rows) + "\n]\n")


def write_cases(name, model, processor, template, names):
    cases = []
    tokenizer = processor.tokenizer
    for chosen in ([0], [1], [2], [3], [1, 3]):
        content = [*({"type": "image"} for _ in chosen), {"type": "text", "text": "what is it?"}]
        text = tokenizer.apply_chat_template(
            [{"role": "user", "content": content}], chat_template=template, add_generation_prompt=True, tokenize=False
        )
        images = [Image.open(TARGET / names[at]).convert("RGB") for at in chosen]
        batch = processor(text=text, images=images, return_tensors="pt", add_special_tokens=False)
        with torch.no_grad():
            features = model.model.get_image_features(**{key: batch[key] for key in batch if key.startswith("pixel")})
            features = getattr(features, "pooler_output", features)
            features = torch.cat([*features]) if isinstance(features, (list, tuple)) else features
            made = model.generate(
                **batch, do_sample=False, max_new_tokens=12, eos_token_id=-1, pad_token_id=0, output_logits=True, return_dict_in_generate=True
            )
        out, prompt = made.sequences, batch["input_ids"][0].tolist()
        logprobs = [float(logits[0].log_softmax(-1).max()) for logits in made.logits]
        cases.append({
            "images": [names[at] for at in chosen],
            "prompt": prompt,
            "first": [round(float(value), 6) for value in features.flatten()[:64]],
            "last": [round(float(value), 6) for value in features.flatten()[-64:]],
            "tokens": out[0, len(prompt) :].tolist(),
            "logprobs": [round(value, 5) for value in logprobs],
        })
    rows = ",\n".join("  " + json.dumps(case) for case in cases)
    (TARGET / name / "cases.json").write_text("[\n" + rows + "\n]\n")


def stir(parameters):
    # Large matrices and small embeddings: else a random model repeats one token, whatever it reads.
    for name, parameter in parameters:
        if parameter.dim() == 1:
            parameter.data += 0.1 * torch.randn_like(parameter)
        else:
            is_table = name in ("text.embedding.weight", "model.text_model.embed_tokens.weight", "lm_head.weight")
            parameter.data = torch.randn_like(parameter) * (0.3 if is_table else 2.0 * parameter[0].numel() ** -0.5)


def make_llava(names):
    recipe = Recipe(
        vocabulary=300,
        vision=VisionShape(side=32, patch=8, width=32, layers=2, heads=2, hidden=48),
        text=Shape(vocabulary=300, width=32, layers=2, heads=2, key_heads=1, head_width=16, hidden=48),
    )
    torch.manual_seed(1)
    reader = Reader(recipe.vision, recipe.text).eval()
    stir(reader.named_parameters())
    from train_emoji.things import all_things

    directory = TARGET / "llava"
    export_model(directory, reader, train_tokenizer(300, all_things(), 0), recipe)
    change_config(directory / "config.json", min_images=0, max_images=8)
    config = transformers.LlavaConfig.from_dict(model_config(reader, recipe.context))
    model = transformers.LlavaForConditionalGeneration(config).eval()
    missing = model.load_state_dict(llava_weights(reader), strict=False)
    assert missing.missing_keys in ([], ["lm_head.weight"]) and not missing.unexpected_keys, missing
    model.tie_weights()
    processor = transformers.LlavaProcessor(
        image_processor=transformers.CLIPImageProcessorPil.from_pretrained(directory),
        tokenizer=transformers.PreTrainedTokenizerFast.from_pretrained(directory),
        patch_size=8,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
    )
    write_cases("llava", model, processor, TEMPLATE, names)
    tidy(directory)


def change_config(path, **changes):
    path.write_text(json.dumps(json.loads(path.read_text()) | changes, indent=2) + "\n")


def tidy(directory):
    for path in [directory / "model.safetensors", *directory.glob("onnx/*_int8.onnx")]:
        path.unlink(missing_ok=True)


def make_idefics3(names):
    side, patch, vision_width, factor = 32, 8, 32, 2
    borders = ["<fake_token_around_image>", "<global-img>", *(f"<row_{r}_col_{c}>" for r in range(1, 7) for c in range(1, 7))]
    specials = ["<end>", "<image>", "<start>", *borders]
    letters = [*"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ?", "Ġ", "Ċ"]
    vocabulary = {token: at for at, token in enumerate([*specials, *letters])}
    tokenizer = Tokenizer(BPE(vocabulary, []))
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in specials])
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    shape = Shape(vocabulary=len(vocabulary), width=32, layers=2, heads=2, key_heads=1, head_width=16, hidden=48)
    text = {
        "model_type": "llama", "vocab_size": shape.vocabulary, "hidden_size": shape.width, "intermediate_size": shape.hidden,
        "num_hidden_layers": shape.layers, "num_attention_heads": shape.heads, "num_key_value_heads": shape.key_heads,
        "head_dim": shape.head_width, "max_position_embeddings": 512, "rms_norm_eps": shape.epsilon, "rope_theta": shape.theta,
        "tie_word_embeddings": True, "pad_token_id": 0,
    }  # fmt: skip
    vision = {
        "model_type": "idefics3_vision", "image_size": side, "patch_size": patch, "hidden_size": vision_width,
        "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2,
    }  # fmt: skip
    raw = {
        "architectures": ["Idefics3ForConditionalGeneration"], "model_type": "idefics3", "image_token_id": 1, "scale_factor": factor,
        "pad_token_id": 0, "tie_word_embeddings": True, "text_config": text, "vision_config": vision, "eos_token_id": 0,
    }  # fmt: skip
    torch.manual_seed(2)
    model = transformers.Idefics3ForConditionalGeneration(transformers.Idefics3Config.from_dict(raw)).eval()
    stir(model.named_parameters())
    model.tie_weights()
    directory = TARGET / "idefics3"
    shutil.rmtree(directory, ignore_errors=True)
    (directory / "onnx").mkdir(parents=True)
    state = model.state_dict()
    network = Network(shape)
    network.load_state_dict(text_state(state, shape))
    onnx.save(build_graph(network.eval(), True, False, reads="inputs_embeds"), directory / "onnx/decoder_model_merged.onnx")
    table = state["model.text_model.embed_tokens.weight"].numpy()
    onnx.save(build_embedding_graph(table, False), directory / "onnx/embed_tokens.onnx")
    onnx.save(idefics3_encoder(state, side, patch, factor, shape.width), directory / "onnx/vision_encoder.onnx")
    template = (
        "{% for message in messages %}{{ '<start>' }}{% for part in message['content'] %}"
        "{% if part['type'] == 'image' %}{{ '<image>' }}{% else %}{{ part['text'] }}{% endif %}"
        "{% endfor %}{{ '<end>\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<start>' }}{% endif %}"
    )
    preprocessor = {
        "image_processor_type": "Idefics3ImageProcessor", "do_convert_rgb": True, "do_resize": True, "size": {"longest_edge": 128},
        "resample": 1, "do_image_splitting": True, "max_image_size": {"longest_edge": side}, "do_rescale": True,
        "rescale_factor": 1 / 255, "do_normalize": True, "image_mean": [0.5] * 3, "image_std": [0.4] * 3, "do_pad": True,
    }  # fmt: skip
    for name, content in {
        "config.json": raw,
        "generation_config.json": {"eos_token_id": 0, "do_sample": False},
        "preprocessor_config.json": preprocessor,
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<end>", "pad_token": "<end>", "chat_template": template,
        },
    }.items():  # fmt: skip
        (directory / name).write_text(json.dumps(content, indent=2) + "\n")
    tokenizer.save(str(directory / "tokenizer.json"))
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<end>", pad_token="<end>")
    settings = {name: value for name, value in preprocessor.items() if name != "image_processor_type"}
    image_processor = transformers.Idefics3ImageProcessorPil(**settings)
    processor = transformers.Idefics3Processor(image_processor, fast, image_seq_len=(side // patch) ** 2 // factor**2)
    write_cases("idefics3", model, processor, template, names)


def text_state(state, shape):
    ours = {"embedding.weight": state["model.text_model.embed_tokens.weight"], "norm": state["model.text_model.norm.weight"]}
    places = {
        "attention_norm": "input_layernorm", "query": "self_attn.q_proj", "key": "self_attn.k_proj", "value": "self_attn.v_proj",
        "output": "self_attn.o_proj", "hidden_norm": "post_attention_layernorm", "gate": "mlp.gate_proj", "up": "mlp.up_proj",
        "down": "mlp.down_proj",
    }  # fmt: skip
    for at in range(shape.layers):
        for name, place in places.items():
            suffix = "" if name.endswith("norm") else ".weight"
            ours[f"layers.{at}.{name}{suffix}"] = state[f"model.text_model.layers.{at}.{place}.weight"]
    return ours


def write_tanh_gelu(graph, x):
    return graph.op("Gelu", x, approximate="tanh")


def idefics3_encoder(state, side, patch, factor, text_width):
    """pixel_values [1, tiles, 3, side, side], pixel_attention_mask → image_features; every tile is whole, so the mask says nothing."""
    vision = {name.removeprefix("model.vision_model."): value.numpy() for name, value in state.items() if "vision_model" in name}
    graph, rows = Graph(False), side // patch
    pixels = graph.op("Reshape", "pixel_values", graph.ints(-1, 3, side, side))
    kernel, bias = vision["embeddings.patch_embedding.weight"], vision["embeddings.patch_embedding.bias"]
    x = write_patches(graph, pixels, kernel, bias, rows * rows)
    x = graph.op("Add", x, graph.keep("positions", vision["embeddings.position_embedding.weight"]))
    places = {
        "norm1": "layer_norm1", "query": "self_attn.q_proj", "key": "self_attn.k_proj", "value": "self_attn.v_proj",
        "output": "self_attn.out_proj", "norm2": "layer_norm2", "up": "mlp.fc1", "down": "mlp.fc2",
    }  # fmt: skip
    for at in range(2):
        layer = {
            f"{ours}.{kind}": vision[f"encoder.layers.{at}.{theirs}.{kind}"] for ours, theirs in places.items() for kind in ("weight", "bias")
        }
        x = write_layer(graph, x, f"layers.{at}.", layer, TransformerShape(2, 1e-6, write_tanh_gelu))
    x = write_norm(graph, x, "post", vision["post_layernorm.weight"], vision["post_layernorm.bias"], 1e-6)
    width = kernel.shape[0]
    # Squares of factor × factor patches become one token.
    x = graph.op("Reshape", x, graph.ints(-1, rows, rows // factor, width * factor))
    x = graph.op("Transpose", x, perm=[0, 2, 1, 3])
    x = graph.op("Reshape", x, graph.ints(-1, rows // factor, rows // factor, width * factor**2))
    x = graph.op("Transpose", x, perm=[0, 2, 1, 3])
    x = graph.op("Reshape", x, graph.ints(-1, (rows // factor) ** 2, width * factor**2))
    weights = {"connector.weight": state["model.connector.modality_projection.proj.weight"].numpy()}
    write_linear(graph, x, "connector", weights, name="image_features")
    tensor = helper.make_tensor_value_info
    inputs = [
        tensor("pixel_values", TensorProto.FLOAT, ["batch_size", "num_images", 3, side, side]),
        tensor("pixel_attention_mask", TensorProto.BOOL, ["batch_size", "num_images", side, side]),
    ]
    return graph.model(inputs, [tensor("image_features", TensorProto.FLOAT, ["num_tiles", (rows // factor) ** 2, text_width])])


def main():
    torch.set_num_threads(1)
    names = draw_images()
    write_resized(names)
    make_llava(names)
    make_idefics3(names)


main()
