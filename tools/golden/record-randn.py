"""Records torch.randn on the CPU for libs/diffusion/src/random/torch-generator.test.ts.

    pip install torch==2.15.0 numpy==2.4.6
    python tools/golden/record-randn.py

Recorded with Python 3.11, torch 2.15.0 (AVX2). Each sequence draws its sizes one after the other from one generator;
of an array longer than 40 values the first 24 and the last 16 are kept.
"""

import json
import pathlib

import torch

SEEDS = [0, 1, 42, 2**32 - 1, 2**32 + 1, 2**53 - 1]
# Every size on its own, then sequences: odd short draws leave half a pair behind, which torch keeps across a long draw;
# 700 words cross the twister's state of 624.
SEQUENCES = [[4], [16], [100], [1024], [3, 3], [3, 16, 1, 4], [17, 31, 15, 33], [16, 16, 700, 16], [5, 1000, 2, 100]]


def keep(values):
    return values if len(values) <= 40 else values[:24] + values[-16:]


draws = []
for seed in SEEDS:
    for sizes in SEQUENCES:
        generator = torch.Generator("cpu").manual_seed(seed)
        arrays = [torch.randn(size, generator=generator, dtype=torch.float32).tolist() for size in sizes]
        draws.append({"seed": seed, "sizes": sizes, "values": [[float(f"{v:.9g}") for v in keep(a)] for a in arrays]})

lines = ",\n".join("  " + json.dumps(draw) for draw in draws)
root = pathlib.Path(__file__).resolve().parents[2]
target = root / "tools/golden/vectors/torch-randn.json"
target.parent.mkdir(parents=True, exist_ok=True)
target.write_text(f'{{"torch": "{torch.__version__}", "draws": [\n{lines}\n]}}\n')
