import torch

from train_writer.placing import place_tokens
from train_writer.tokenizer import train_tokenizer


def test_words_begin_near_what_they_have_to_do_with():
    tokenizer = train_tokenizer(4096, 60, 0)
    placed = place_tokens(tokenizer, 4096, 192, 0)
    assert placed.shape == (4096, 192)

    def likeness(one: str, other: str) -> float:
        first, second = (placed[tokenizer.encode(f" {word}").ids].mean(0) for word in (one, other))
        return torch.cosine_similarity(first, second, dim=0).item()

    for near, far, word in (
        ("bee", "guitar", "honey"),
        ("dog", "pizza", "puppy"),
        ("violin", "cat", "orchestra"),
        ("pizza", "dog", "pepperoni"),
    ):
        assert likeness(word, near) > likeness(word, far) + 0.15, word


def test_it_is_the_seed_that_says_where():
    tokenizer = train_tokenizer(1024, 60, 0)
    first, again, other = (place_tokens(tokenizer, 1024, 64, seed) for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
