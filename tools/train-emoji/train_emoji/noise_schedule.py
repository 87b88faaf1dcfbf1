"""Stable Diffusion's noise schedule with v-prediction: training, evaluation and scheduler_config.json go by it."""

import numpy as np

TRAIN_STEPS = 1000

SCHEDULE = {
    "num_train_timesteps": TRAIN_STEPS,
    "beta_schedule": "scaled_linear",
    "beta_start": 0.00085,
    "beta_end": 0.012,
    "prediction_type": "v_prediction",
}
"""As diffusers' schedulers name it."""


def signal_and_noise() -> tuple[np.ndarray, np.ndarray]:
    """For each of the 1000 timesteps the shares of picture and noise, √ᾱ and √(1-ᾱ): float64 [1000] each."""
    betas = np.linspace(SCHEDULE["beta_start"] ** 0.5, SCHEDULE["beta_end"] ** 0.5, TRAIN_STEPS) ** 2
    alphas = np.cumprod(1 - betas)
    return np.sqrt(alphas), np.sqrt(1 - alphas)


def trailing_timesteps(steps: int) -> np.ndarray:
    """The timesteps of a picture in so many steps, from 999 down: diffusers' "trailing" spacing. Int64 [steps]."""
    return np.round(np.arange(TRAIN_STEPS, 0, -TRAIN_STEPS / steps)).astype(np.int64) - 1
