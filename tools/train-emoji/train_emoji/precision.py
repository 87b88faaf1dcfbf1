"""bfloat16 where the machine computes in it: elsewhere it is emulated, and twenty times slower than float32."""

from functools import cache

import torch
from torch import nn


@cache
def fast_type(device_type: str) -> torch.dtype:
    """bfloat16, or float32 on CPUs without instructions for it."""
    if device_type == "cuda":
        return torch.bfloat16
    able = torch.cpu.get_capabilities()
    return torch.bfloat16 if able.get("avx512_bf16") or able.get("amx_bf16") else torch.float32


def autocast(module: nn.Module) -> torch.autocast:
    """Mixed precision for a module, if that is faster where it is."""
    device_type = next(module.parameters()).device.type
    return torch.autocast(device_type, torch.bfloat16, enabled=fast_type(device_type) is torch.bfloat16)
