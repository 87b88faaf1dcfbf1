"""The trainer of the embedded text models."""
