"""The model behind BentoML with its adaptive batching: `bentoml serve bentoml_server:Painter`."""

import base64

import bentoml
from images import Images


@bentoml.service(workers=1, traffic={"timeout": 600, "max_concurrency": 1000}, logging={"access": {"enabled": False}})
class Painter:
    def __init__(self):
        self.images = Images()

    # Whoever would wait for longer than max_latency_ms is refused.
    @bentoml.api(batchable=True, max_batch_size=8, max_latency_ms=600_000)
    def predict(self, requests: list[dict]) -> list[str]:
        return [base64.b64encode(file).decode() for file in self.images.paint_groups(requests)]
