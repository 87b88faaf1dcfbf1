import torch
from checkpoints import cogview4

from export_model.cogview4 import list_cogview4_models


def test_what_is_traced_computes_what_diffusers_computes() -> None:
    original = cogview4()
    models = list_cogview4_models(cogview4(), "fp32")

    glm, config = models["text_encoder"]
    inputs = config.generate_dummy_inputs(batch_size=3, sequence_length=32)
    with torch.no_grad():
        states = original.text_encoder(**inputs, output_hidden_states=True).hidden_states
        assert torch.allclose(glm(**inputs)["hidden_states.2"], states[-2], atol=1e-5)

    transformer, config = models["transformer"]
    inputs = config.generate_dummy_inputs(batch_size=3, sequence_length=32)
    with torch.no_grad():
        expected = original.transformer(**inputs).sample
        assert torch.allclose(transformer(**inputs).sample, expected, atol=1e-5)
    assert expected.std() > 0.01
