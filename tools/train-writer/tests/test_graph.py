"""The ONNX graphs against the network itself, and a row's bits alone and in a batch."""

import numpy as np
import onnxruntime
import pytest
import torch

from train_writer.graph import build_graph

HEADS, HEAD_WIDTH = 2, 32


def session(network, is_causal, is_int8=False):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(build_graph(network, is_causal, is_int8).SerializeToString(), options)


def call(graph, ids, mask, positions, past=None):
    layers = (len(graph.get_outputs()) - 1) // 2
    names = [f"past_key_values.{layer}.{part}" for layer in range(layers) for part in ("key", "value")]
    past = past or [np.zeros((len(ids), HEADS, 0, HEAD_WIDTH), np.float32)] * len(names)
    feed = {"input_ids": ids, "attention_mask": mask, "position_ids": positions, **dict(zip(names, past, strict=True))}
    logits, *present = graph.run(None, feed)
    return logits, present


@pytest.mark.parametrize("is_causal", [True, False])
def test_says_what_the_network_says_with_and_without_a_past(network, is_causal):
    graph = session(network, is_causal)
    ids = np.random.default_rng(0).integers(0, 1024, (2, 20))
    places = np.arange(20)[None].repeat(2, 0)
    whole, _ = call(graph, ids[:, :12], np.ones((2, 12), np.int64), places[:, :12])
    seen = torch.ones(1, 20, 20, dtype=torch.bool)
    mask = seen.tril() if is_causal else seen
    with torch.no_grad():
        wanted = network(torch.from_numpy(ids[:, :12]), torch.arange(12)[None], mask[:, :12, :12])
    np.testing.assert_allclose(whole, wanted.numpy(), atol=2e-5)
    _, past = call(graph, ids[:, :12], np.ones((2, 12), np.int64), places[:, :12])
    logits, _ = call(graph, ids[:, 12:], np.ones((2, 20), np.int64), places[:, 12:], past)
    if not is_causal:
        mask = mask.clone()
        mask[:, :12, 12:] = False
    with torch.no_grad():
        wanted = network(torch.from_numpy(ids), torch.arange(20)[None], mask)
    np.testing.assert_allclose(logits, wanted[:, 12:].numpy(), atol=2e-5)


@pytest.mark.parametrize("is_causal", [True, False])
@pytest.mark.parametrize("is_int8", [True, False])
def test_a_rows_bits_are_the_same_alone_and_in_a_batch(network, is_causal, is_int8):
    graph = session(network, is_causal, is_int8)
    rng = np.random.default_rng(1)
    prompts = [rng.integers(0, 1024, length) for length in (5, 11, 17, 30, 9, 23)]
    longest = max(map(len, prompts))
    pads = [longest - len(prompt) for prompt in prompts]
    ids = np.stack([np.pad(prompt, (pad, 0)) for prompt, pad in zip(prompts, pads, strict=True)])
    mask = np.stack([np.arange(longest) >= pad for pad in pads]).astype(np.int64)
    places = np.maximum(np.arange(longest)[None] - np.array(pads)[:, None], 0)
    together, past = call(graph, ids, mask, places)
    more = rng.integers(0, 1024, (len(prompts), 8))
    after = np.pad(mask, ((0, 0), (0, 8)), constant_values=1)
    next_places = np.array([[len(prompt)] for prompt in prompts]) + np.arange(8)
    then, _ = call(graph, more, after, next_places, past)
    for row, (prompt, pad) in enumerate(zip(prompts, pads, strict=True)):
        size = len(prompt)
        alone, own = call(graph, prompt[None], np.ones((1, size), np.int64), np.arange(size)[None])
        assert (alone[0] == together[row, pad:]).all()
        alone, _ = call(graph, more[row : row + 1], np.ones((1, size + 8), np.int64), next_places[row : row + 1], own)
        assert (alone[0] == then[row]).all()


def test_int8_is_near_and_a_quarter_of_the_size(network):
    large, small = (build_graph(network, True, is_int8).ByteSize() for is_int8 in (False, True))
    assert small < 0.45 * large
    ids, mask, places = np.arange(10)[None], np.ones((1, 10), np.int64), np.arange(10)[None]
    exact, _ = call(session(network, True), ids, mask, places)
    rounded, _ = call(session(network, True, True), ids, mask, places)
    assert np.abs(exact - rounded).max() < 0.05 * np.abs(exact).max()
