"""Records what transformers' CLIPImageProcessor makes of images, for the tests of the safety checker's preprocessing.

    pip install transformers==5.23.0 numpy==2.4.6 pillow==11.3.0
    python tools/golden/record-clip-image.py

Without torchvision, so that images are scaled by Pillow, as they were for all pipelines that have a checker; Pillow 13 scales some
images down first and then across, which differs by some levels. The images are made here and in the test by the same formula.
Recorded with the settings of Stable Diffusion's feature_extractor: the size of what comes
out, and each 449th of its values, which is a prime number, so that all colors and columns are among them.
"""

import json
import pathlib

import numpy as np
import PIL
import transformers
from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

SIZES = [(128, 128), (512, 512), (640, 448), (448, 640), (225, 1000), (224, 224), (96, 64)]
"""Width and height: larger and smaller than the 224 pixels of the model, and in the ratios of portraits and strips."""

SETTINGS = {
    "crop_size": 224,
    "do_center_crop": True,
    "do_convert_rgb": True,
    "do_normalize": True,
    "do_resize": True,
    "feature_extractor_type": "CLIPFeatureExtractor",
    "image_mean": [0.48145466, 0.4578275, 0.40821073],
    "image_std": [0.26862954, 0.26130258, 0.27577711],
    "resample": 3,
    "size": 224,
}
STRIDE = 449


def image(width: int, height: int) -> np.ndarray:
    """Edges and smooth parts, of all values of a byte."""
    y, x, color = np.meshgrid(np.arange(height), np.arange(width), np.arange(3), indexing="ij")
    return ((x * x * (color + 1) + 7 * y * (x // 9) + 31 * y * color) % 256).astype(np.uint8)


def main() -> None:
    """Writes vectors/clip-image.json."""
    processor = CLIPImageProcessorPil(**SETTINGS)
    cases = []
    for width, height in SIZES:
        image = PIL.Image.fromarray(image(width, height))
        values = np.asarray(processor(image, return_tensors="np").pixel_values, dtype=np.float32)
        sample = [float(value) for value in values.reshape(-1)[::STRIDE]]
        cases.append({"width": width, "height": height, "dims": list(values.shape), "values": sample})
    versions = {"transformers": transformers.__version__, "pillow": PIL.__version__, "numpy": np.__version__}
    recorded = {"versions": versions, "settings": SETTINGS, "stride": STRIDE, "cases": cases}
    target = pathlib.Path(__file__).parent / "vectors/clip-image.json"
    target.write_text(json.dumps(recorded) + "\n")


if __name__ == "__main__":
    main()
