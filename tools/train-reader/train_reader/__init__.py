"""Trains a small vision-language model that describes images of the kind that emoji-sd draws."""
