import type { PictureRequest } from '@darkroom/client';

/** What stands in the form's fields, as typed. */
export interface FormValues {
  prompt: string;
  negative_prompt: string;
  model: string;
  width: string;
  height: string;
  num_inference_steps: string;
  guidance_scale: string;
  seed: string;
  n: string;
  scheduler: string;
}

const wantedPreviews = 16;

/**
 * The request that a form asks for. An empty field is left out, for the model's own value; only the seed is drawn here,
 * so that "same seed again" and the curl line know it at once. Nothing is checked: the API does, and says it in words.
 */
export function requestOf(values: FormValues, drawSeed: () => number): PictureRequest {
  const { prompt, negative_prompt, model, width, height, scheduler } = values;
  const steps = number(values.num_inference_steps);
  return {
    prompt: prompt.trim(),
    ...(negative_prompt.trim() !== '' && { negative_prompt: negative_prompt.trim() }),
    ...(model !== '' && { model }),
    ...((width !== '' || height !== '') && { size: `${width.trim()}x${height.trim()}` }),
    ...given('num_inference_steps', steps),
    ...given('guidance_scale', number(values.guidance_scale)),
    seed: number(values.seed) ?? drawSeed(),
    ...given('n', number(values.n)),
    ...(scheduler !== '' && { scheduler }),
    preview: { every: previewEvery(steps) },
  };
}

/** The fields that make the same request again. */
export function valuesOf(request: PictureRequest): Partial<FormValues> {
  const [width = '', height = ''] = request.size?.split('x') ?? [];
  return {
    prompt: request.prompt,
    negative_prompt: request.negative_prompt ?? '',
    ...(request.model !== undefined && { model: request.model }),
    width,
    height,
    num_inference_steps: text(request.num_inference_steps),
    guidance_scale: text(request.guidance_scale),
    seed: text(request.seed),
    n: text(request.n),
    ...(request.scheduler !== undefined && { scheduler: request.scheduler }),
  };
}

/** Often enough to see it develop, seldom enough for a long run. */
function previewEvery(steps: number | undefined): number {
  return typeof steps === 'number' && steps > 0 ? Math.min(1000, Math.max(1, Math.round(steps / wantedPreviews))) : 1;
}

/** What is no number goes to the API as it is, which then says what it expected. */
function number(typed: string): number | undefined {
  const trimmed = typed.trim();
  if (trimmed === '') return undefined;
  const value = Number(trimmed);
  return Number.isFinite(value) ? value : (trimmed as unknown as number);
}

function given<Name extends string>(name: Name, value: number | undefined): Partial<Record<Name, number>> {
  return value === undefined ? {} : ({ [name]: value } as Record<Name, number>);
}

function text(value: number | undefined): string {
  return value === undefined ? '' : String(value);
}
