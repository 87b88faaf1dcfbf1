"""That capitals, beginnings and apostrophes make no difference, in every library that reads the tokenizer."""

import jinja2
import pytest
import transformers

from train_writer.tokenizer import render, train_tokenizer, write_tokenizer

CHAT = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": " SOMETHING Cold\n"},
    {"role": "assistant", "content": "a snowman on a blue background"},
    {"role": "user", "content": "I’d prefer Pink"},
]


@pytest.fixture(scope="module")
def fast(tokenizer, tmp_path_factory):
    directory = tmp_path_factory.mktemp("tokenizer")
    write_tokenizer(tokenizer, directory, 256)
    return transformers.PreTrainedTokenizerFast.from_pretrained(directory)


@pytest.mark.parametrize("wish", ["SOMETHING COLD", "Something cold", "  something cold ", "something Cold"])
def test_reads_capitals_and_beginnings_as_any_other_word(fast, wish):
    prompts = [
        fast.apply_chat_template([{"role": "user", "content": text}], add_generation_prompt=True, tokenize=True, return_dict=False)
        for text in (wish, "something cold")
    ]
    assert prompts[0] == prompts[1]


def test_a_word_is_the_same_token_wherever_it_stands(tokenizer):
    text = render([("user", "cat cat")], for_answer=True)
    (cat,) = tokenizer.encode(" cat").ids
    assert tokenizer.encode(text).ids.count(cat) == 2


def test_apostrophes_are_all_the_same(tokenizer):
    assert tokenizer.encode("I’d like").ids == tokenizer.encode("i'd like").ids


def test_an_answer_decodes_to_itself(fast, tokenizer):
    answer = "an owl on a gray gradient background"
    ids = tokenizer.encode(answer).ids
    assert tokenizer.decode(ids) == answer
    assert fast.decode(ids) == answer


def test_the_template_and_what_training_renders_are_one(fast, tokenizer):
    messages = [(message["role"], message["content"]) for message in CHAT]
    for for_answer in (True, False):
        text = fast.apply_chat_template(CHAT, add_generation_prompt=for_answer, tokenize=False)
        assert text == render(messages, for_answer)
        assert fast(text, add_special_tokens=False).input_ids == tokenizer.encode(text, add_special_tokens=False).ids


@pytest.mark.parametrize("role", ["robot", "tool", "developer"])
def test_a_role_that_was_not_taught_is_refused(fast, role):
    with pytest.raises(jinja2.TemplateError, match="expected one of the roles system, user and assistant"):
        fast.apply_chat_template([*CHAT, {"role": role, "content": "beep"}], tokenize=False)


def test_the_same_seed_makes_the_same_tokenizer():
    assert train_tokenizer(600, 40, 3).to_str() == train_tokenizer(600, 40, 3).to_str()
