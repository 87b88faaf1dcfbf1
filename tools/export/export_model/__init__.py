"""A diffusers checkpoint as ONNX files in fp32, fp16 and INT8."""

import os
import warnings

# Before anything imports the libraries: what they say of themselves hides what this tool has to say.
os.environ.setdefault("DIFFUSERS_VERBOSITY", "error")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
warnings.filterwarnings("ignore", category=FutureWarning)
warnings.filterwarnings("ignore", message="CUDA is not available")
