"""Makes models/emoji-sd from nothing: pictures, captions, tokenizer, VAE, text encoder, UNet, ONNX files, figures."""
