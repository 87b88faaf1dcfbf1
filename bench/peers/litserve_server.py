"""The model behind LitServe with its batching. PAINT says how a batch is made: paint_groups or paint_rows."""

import os

from fastapi import Response
from litserve import LitAPI, LitServer
from images import Images


class Painter(LitAPI):
    def setup(self, device):
        self.paint = getattr(Images(), os.environ["PAINT"])

    def decode_request(self, request):
        return request

    def predict(self, requests):
        return self.paint(requests)

    def encode_response(self, file):
        return Response(file, media_type="image/png")


if __name__ == "__main__":
    server = LitServer(Painter(max_batch_size=8, batch_timeout=0.01), accelerator="cpu", timeout=False)
    server.run(host="127.0.0.1", port=int(os.environ["PORT"]), generate_client_file=False, log_level="warning")
