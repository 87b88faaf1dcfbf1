"""All figures of a model's directory, printed as they come."""

from pathlib import Path

from train_emoji.evaluation import FILES, OnnxModel, Sampling, compare_pictures, measure_vae, recognize_held_out
from train_emoji.pictures import render_sprites
from train_emoji.things import all_things

_COMPARED = 8


def judge_model(
    directory: Path,
    *,
    things: int | None = None,
    pairs: int | None = None,
    threads: int = 1,
    sampling: Sampling | None = None,
) -> dict:
    """Judges each variant that the directory has, and compares INT8 with fp32 if it has both.

    Args:
        directory: In the diffusers ONNX layout.
        things: The model knows the first so many only; all by default.
        pairs: Look at so many held-out pairs; all by default.
        threads: Of ONNX Runtime.
        sampling: How the pictures are made.

    Raises:
        SystemExit: the directory has no variant that is whole.
    """
    sampling = sampling or Sampling()
    known = all_things()[:things]
    sprites = render_sprites(known)
    parts = ("text_encoder", "unet", "vae_decoder")
    variants = [name for name, file in FILES.items() if all((directory / part / file).exists() for part in parts)]
    if not variants:
        raise SystemExit(f"{directory} has neither model.onnx nor model_int8.onnx of all of {', '.join(parts)}")
    figures: dict = {"sampling": vars(sampling), "variants": {}}
    models = {name: OnnxModel(directory, name, threads) for name in variants}
    for name, model in models.items():
        found = recognize_held_out(model, known, sprites, sampling, pairs or len(known))
        found["vae_psnr_db"] = measure_vae(directory, name, sprites, threads)
        figures["variants"][name] = found
        print(
            f"{name}: of {found['pairs']} held-out pairs background right {found['background']:.1%}, "
            f"thing recognized {found['thing']:.1%}; VAE PSNR {found['vae_psnr_db']:.2f} dB; "
            f"{found['seconds']:.2f} s a picture; misses: {', '.join(found['misses']) or 'none'}",
            flush=True,
        )
    if len(models) == 2:
        difference = compare_pictures(models["fp32"], models["int8"], known, sampling, _COMPARED)
        figures["int8_psnr_db"] = {"mean": float(difference.mean()), "least": float(difference.min())}
        print(f"int8 against fp32: PSNR {difference.mean():.1f} dB, at least {difference.min():.1f} dB", flush=True)
    return figures
