import torch

from train_emoji.muon import Muon, orthogonalize


def test_singular_values_come_near_one() -> None:
    generator = torch.Generator().manual_seed(0)
    for shape in [(32, 96), (96, 32), (64, 64)]:
        singular = torch.linalg.svdvals(orthogonalize(torch.randn(shape, generator=generator)).float())
        assert (singular > 0.3).all()
        assert (singular < 1.4).all()


def test_updates_have_the_size_of_adamw() -> None:
    parameter = torch.nn.Parameter(torch.zeros(48, 16, 3, 3))
    optimizer = Muon([parameter], lr=1.0)
    parameter.grad = torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)) * 1e-6
    optimizer.step()
    assert 0.15 < parameter.detach().square().mean().sqrt() < 0.25


def test_fits_a_matrix() -> None:
    generator = torch.Generator().manual_seed(2)
    wanted = torch.randn(8, 8, generator=generator)
    parameter = torch.nn.Parameter(torch.zeros(8, 8))
    optimizer = Muon([parameter], lr=0.1, weight_decay=0)
    for _ in range(300):
        optimizer.zero_grad()
        loss = (parameter - wanted).square().mean()
        loss.backward()
        optimizer.step()
    assert loss < 0.01
