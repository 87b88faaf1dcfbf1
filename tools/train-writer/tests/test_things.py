import pytest

from train_writer.things import Prompt, all_nouns, parse_prompt, thing_of_noun, with_article


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("owl", "an owl"),
        ("umbrella", "an umbrella"),
        ("unicorn", "a unicorn"),
        ("ufo", "a ufo"),
        ("big owl", "a big owl"),
        ("headphones", "headphones"),
        ("orange background", "an orange background"),
    ],
)
def test_has_the_article_that_is_spoken(words, said):
    assert with_article(words) == said


def test_reads_what_it_writes():
    for thing, nouns in enumerate(all_nouns()):
        for noun in nouns:
            for prompt in (
                Prompt(thing_of_noun()[noun], noun, "orange"),
                Prompt(thing_of_noun()[noun], noun, "red", "huge", "cute", gradient=True),
            ):
                assert parse_prompt(str(prompt)) == prompt, (thing, noun)


@pytest.mark.parametrize(
    "text",
    [
        "a owl on a red background",
        "an cat on a red background",
        "a cat on an red background",
        "a cat on a teal background",
        "a cat dog on a red background",
        "a cat on a red background.",
        "a cat",
        "",
    ],
)
def test_does_not_take_what_is_not_well_formed(text):
    assert parse_prompt(text) is None
