"""A whole run of the tiny recipe through the command line, and what others make of its models."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers

from train_writer.decoding import Writer
from train_writer.recipe import PRESETS, Recipe, change_recipe, keep_recipe
from train_writer.stages import DIFFUSION, STAGES, WRITER, Run

HERE = Path(__file__).resolve().parent
CHATS = [
    [("user", "Something COLD, please")],
    [("user", "a cat"), ("assistant", "a cat on a pink background"), ("user", "I’d prefer blue")],
]


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("whole")
    ended = subprocess.run(
        [sys.executable, str(HERE.parent / "train.py"), "--preset", "tiny", "--out", str(out)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return out


@pytest.mark.parametrize("name", [WRITER, DIFFUSION])
def test_makes_directories_as_the_embedded_ones(whole, name):
    embedded, made = HERE.parents[2] / "models" / name, whole / name
    files = lambda directory: {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()}  # noqa: E731
    extra = {"onnx/model.onnx"} | ({"model.safetensors"} if name == WRITER else set())
    assert files(made) == (files(embedded) | extra) - {"README.md", "NOTICE.md"}
    for file in ("config.json", "generation_config.json", "tokenizer_config.json"):
        kept, new = (json.loads((directory / file).read_text()) for directory in (embedded, made))
        assert set(new) == set(kept)


def test_judges_them(whole):
    figures = json.loads((whole / "figures.json").read_text())
    assert set(figures) == {f"{name} {weights}" for name in (WRITER, DIFFUSION) for weights in ("fp32", "int8")}
    for name, of_model in figures.items():
        assert {"unseen wordings", "unseen pairs", "words seen bare", "then a color", "free wishes", "all"} <= set(of_model)
        assert ("calls a token" in of_model["all"]) == name.startswith(DIFFUSION)


def test_goes_on_after_an_interruption_and_makes_nothing_twice(whole, tmp_path, capsys):
    out = tmp_path / "parts"
    out.mkdir()
    shutil.copy(whole / "tokenizer.json", out)
    recipe = PRESETS["tiny"]
    torch.set_num_threads(1)
    for _ in range(2):
        Run(out, recipe, stop_after=3).run_stages(("tokenizer", "base", "diffusion"))
    assert Run(out, recipe).run_stages(("tokenizer", "base", "diffusion"))
    for stage in ("base", "diffusion"):
        kept, again = (torch.load(folder / f"{stage}.pt") for folder in (whole, out))
        assert all(torch.equal(kept[name], again[name]) for name in kept)
    capsys.readouterr()
    assert Run(out, recipe).run_stages(("tokenizer", "base", "diffusion"))
    assert capsys.readouterr().out.count("already made") == 3
    assert not list(out.glob("*.checkpoint"))


def test_transformers_writes_the_same_with_the_exported_weights(whole):
    model = transformers.LlamaForCausalLM.from_pretrained(whole / WRITER).eval()
    writer = Writer(whole / WRITER, "fp32")
    for chat in CHATS:
        prompt = torch.tensor([writer.encode(chat)])
        said = model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=24, do_sample=False)[0, prompt.shape[1] :]
        text = transformers.PreTrainedTokenizerFast.from_pretrained(whole / WRITER).decode(said, skip_special_tokens=True)
        assert writer.answer([chat]) == [text]


@pytest.mark.parametrize("weights", ["fp32", "int8"])
@pytest.mark.parametrize("name", [WRITER, DIFFUSION])
def test_darkroom_writes_the_same(whole, name, weights):
    assert (HERE.parents[2] / "libs/language/dist/index.js").exists(), "build Darkroom first: npx tsc -b tsconfig.build.json"
    chats = [[{"role": role, "content": text} for role, text in chat] for chat in CHATS]
    command = ["node", str(HERE / "write-text.mjs"), str(whole / name), weights, json.dumps(chats)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    said = json.loads(ended.stdout)
    writer = Writer(whole / name, weights)
    assert [answer["prompt"] for answer in said["answers"]] == [writer.encode(chat) for chat in CHATS]
    # Without what is left of a character that the longest answer cut in two.
    texts = [text.rstrip("\ufffd") for chat in CHATS for text in writer.answer([chat])]
    assert [answer["text"].rstrip("\ufffd") for answer in said["answers"]] == texts
    assert said["mode"] == ("autoregressive" if name == WRITER else "block_diffusion")
    assert said["deterministic"] == {"is": True}


@pytest.mark.parametrize("name", [WRITER, DIFFUSION])
def test_answers_are_the_same_alone_and_together(whole, name):
    writer = Writer(whole / name, "int8")
    assert writer.answer(CHATS) == [text for chat in CHATS for text in writer.answer([chat])]


def test_a_run_keeps_its_recipe(tmp_path):
    recipe = change_recipe(PRESETS["tiny"], ["seed=5", "rate=0.001"])
    assert (recipe.seed, recipe.rate) == (5, 0.001)
    keep_recipe(tmp_path, recipe)
    keep_recipe(tmp_path, recipe)
    with pytest.raises(SystemExit, match="seed 5"):
        keep_recipe(tmp_path, change_recipe(recipe, ["seed=6"]))
    for change in ("sead=1", "seed=one"):
        with pytest.raises(SystemExit, match="expected"):
            change_recipe(recipe, [change])
    assert set(STAGES) >= {"base", "writer", "diffusion"}
    assert Recipe().shape().vocabulary == 6144
    assert np.isclose(Recipe().confidence, 0.9)
