"""Muon, the optimizer of the networks' matrices."""

from collections.abc import Iterable

import torch


class Muon(torch.optim.Optimizer):
    """Momentum whose update is made orthogonal by Newton-Schulz steps (Keller Jordan, github.com/KellerJordan/Muon).

    Updates are scaled by 0.2·√max(rows, columns), which gives them AdamW's usual size (Moonlight, arXiv 2502.16982).
    """

    def __init__(self, params: Iterable, lr: float, momentum: float = 0.95, weight_decay: float = 1e-2) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:
        """One update from the gradients."""
        for group in self.param_groups:
            for matrix in group["params"]:
                momentum = self.state[matrix].setdefault("momentum", torch.zeros_like(matrix))
                momentum.lerp_(matrix.grad, 1 - group["momentum"])
                update = orthogonalize(matrix.grad.lerp(momentum, group["momentum"]))
                matrix.mul_(1 - group["lr"] * group["weight_decay"])
                matrix.add_(update, alpha=-group["lr"] * 0.2 * max(update.shape) ** 0.5)


def orthogonalize(matrix: torch.Tensor, steps: int = 5) -> torch.Tensor:
    """A matrix with the same singular vectors and singular values near 1: [rows, columns]."""
    tall = matrix.shape[0] > matrix.shape[1]
    x = matrix.T if tall else matrix
    x = x / (x.norm() + 1e-7)
    for _ in range(steps):
        gram = x @ x.T
        x = 3.4445 * x + (-4.7750 * gram + 2.0315 * (gram @ gram)) @ x
    return x.T if tall else x
