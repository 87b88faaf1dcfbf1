"""The model behind Ray Serve with its batching, a Ray of its own below it."""

import asyncio
import os
import sys

import ray
from images import Images
from ray import serve
from starlette.requests import Request
from starlette.responses import Response

CORES = int(os.environ["MODEL_THREADS"])


@serve.deployment(max_ongoing_requests=1000, ray_actor_options={"num_cpus": 1}, logging_config={"enable_access_log": False})
class Painter:
    def __init__(self):
        self.images = Images()

    @serve.batch(max_batch_size=8, batch_wait_timeout_s=0.01)
    async def paint(self, requests):
        # In a thread, so that the next ones come in meanwhile.
        return await asyncio.to_thread(self.images.paint_groups, requests)

    async def __call__(self, request: Request):
        return Response(await self.paint(await request.json()), media_type="image/png")


ray.init(num_cpus=CORES, include_dashboard=False, object_store_memory=100_000_000, log_to_driver=False)
serve.start(http_options={"host": "127.0.0.1", "port": int(os.environ["PORT"])})
serve.run(Painter.bind(), route_prefix="/predict")
# Until whoever started this goes away.
sys.stdin.read()
serve.shutdown()
ray.shutdown()
