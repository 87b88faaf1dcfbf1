"""A diffusers checkpoint as ONNX files in fp32, fp16 and INT8."""
