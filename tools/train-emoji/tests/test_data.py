import numpy as np

from train_emoji.captions import held_out_prompt, write_caption
from train_emoji.pictures import Scene, Sprites, draw_scene, paint
from train_emoji.recognition import Recognizer, find_color
from train_emoji.things import COLOR_NAMES, COLORS, Thing, held_out_pairs, is_held_out


def test_each_thing_has_one_held_out_color() -> None:
    pairs = held_out_pairs(218)
    assert [thing for thing, _ in pairs] == [*range(218)]
    assert {color for _, color in pairs} == {*range(10)}


def test_scenes_avoid_held_out_pairs_unless_asked() -> None:
    rng = np.random.default_rng(0)
    without = [draw_scene(rng, 3) for _ in range(300)]
    assert {scene.color for scene in without} == {color for color in range(10) if not is_held_out(3, color)}
    assert any(is_held_out(3, draw_scene(rng, 3, held_out=True).color) for _ in range(300))


def test_captions_are_true(things: tuple[Thing, ...]) -> None:
    rng = np.random.default_rng(1)
    for _ in range(3000):
        scene = draw_scene(rng, int(rng.integers(len(things))))
        caption = write_caption(things, scene, rng, empty=0)
        assert any(noun in caption for noun in things[scene.thing].nouns)
        if "background" in caption:
            color = COLOR_NAMES[scene.color]
            assert color in caption or (color == "gray" and "grey" in caption)
        assert scene.gradient or "gradient" not in caption


def test_captions_are_empty_as_often_as_asked(things: tuple[Thing, ...]) -> None:
    rng = np.random.default_rng(2)
    scene = Scene(0, 1, False, "medium")
    empty = sum(write_caption(things, scene, rng) == "" for _ in range(4000))
    assert 300 < empty < 500


def test_prompts_have_articles(things: tuple[Thing, ...]) -> None:
    nouns = [thing.nouns[0] for thing in things]
    orange = COLOR_NAMES.index("orange")
    assert held_out_prompt(things, nouns.index("unicorn"), orange) == "a unicorn on an orange background"
    assert held_out_prompt(things, nouns.index("headphones"), 0) == "headphones on a red background"


def test_every_painted_thing_is_recognized(things: tuple[Thing, ...], sprites: Sprites) -> None:
    recognizer = Recognizer(sprites)
    rng = np.random.default_rng(3)
    for thing in range(0, len(things), 9):
        scene = draw_scene(rng, thing, held_out=True)
        picture = paint(scene, sprites)
        assert picture.shape == (128, 128, 3)
        assert 0 <= picture.min() <= picture.max() <= 1
        assert find_color(picture) == scene.color
        assert recognizer.find_thing(picture) == thing


def test_plain_background_is_the_color(sprites: Sprites) -> None:
    picture = paint(Scene(0, COLOR_NAMES.index("blue"), False, "small"), sprites)
    np.testing.assert_allclose(picture[0, 0] * 255, COLORS["blue"], atol=1e-4)
