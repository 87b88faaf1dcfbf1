"""The model behind BentoML with its adaptive batching: `bentoml serve bentoml_server:Painter`."""

import base64

import bentoml
from pictures import Pictures


@bentoml.service(workers=1, traffic={"timeout": 600, "max_concurrency": 1000}, logging={"access": {"enabled": False}})
class Painter:
    def __init__(self):
        self.pictures = Pictures()

    # Whoever would wait for longer than max_latency_ms is refused.
    @bentoml.api(batchable=True, max_batch_size=8, max_latency_ms=600_000)
    def predict(self, asked: list[dict]) -> list[str]:
        return [base64.b64encode(file).decode() for file in self.pictures.paint_groups(asked)]
