import sys

from darkroom_api import Client
from darkroom_api.api.images import get_image
from darkroom_api.api.models import list_models
from darkroom_api.api.requests import get_request, submit_request
from darkroom_api.models import Accepted, Error, ImageRequest, ImageStatus

client = Client(base_url=sys.argv[1])

models = list_models.sync(client=client)
print(",".join(f"{model.id} {model.kind}" for model in models.data))

body = ImageRequest(prompt="a red apple on a white background", seed=7, num_inference_steps=4)
accepted = submit_request.sync(client=client, body=body)
assert isinstance(accepted, Accepted), accepted
while True:
    request = get_request.sync(accepted.request_id, client=client, wait="30")
    assert isinstance(request, ImageStatus), request
    if request.status not in ("queued", "running"):
        break
print(request.status, request.images[0].content_type)

image = get_image.sync_detailed(accepted.request_id, "0", client=client)
print(image.headers["content-type"], image.parsed.payload.getvalue()[1:4].decode())

error = submit_request.sync(client=client, body=ImageRequest(prompt="a fox", num_inference_steps=0))
assert isinstance(error, Error), error
print(error.error.param)
