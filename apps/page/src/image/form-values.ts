import type { ImageRequest } from '@darkroom/client';

const texts = ['prompt', 'negative_prompt', 'model', 'scheduler'] as const;
const numbers = ['num_inference_steps', 'guidance_scale', 'seed', 'n', 'strength', 'upscale'] as const;
type Name = (typeof texts)[number] | (typeof numbers)[number];

/** The values of the form's fields, as typed. */
export type FormValues = Record<Name | 'width' | 'height', string> & {
  /** Absent if the box is not ticked. */
  metadata?: 'on';
};

/** Parts of a request that are not typed. */
export interface FormParts {
  image?: ImageRequest['image'] | undefined;
  mask?: ImageRequest['mask'] | undefined;
  loras?: ImageRequest['loras'] | undefined;
}

const wantedPreviews = 16;

/**
 * Converts a form's values to a request. Empty fields are undefined, so that the model's defaults apply; only the seed
 * is drawn here, so that "use settings" and the curl command know it. The API validates the values.
 */
export function requestOf(values: FormValues, drawSeed: () => number, { image, mask, loras }: FormParts = {}) {
  const steps = numberOf(values.num_inference_steps);
  return {
    prompt: values.prompt.trim(),
    negative_prompt: textOf(values.negative_prompt),
    model: textOf(values.model),
    size: values.width === '' && values.height === '' ? undefined : `${values.width.trim()}x${values.height.trim()}`,
    num_inference_steps: steps,
    guidance_scale: numberOf(values.guidance_scale),
    seed: numberOf(values.seed) ?? drawSeed(),
    n: numberOf(values.n),
    scheduler: textOf(values.scheduler),
    preview: { every: previewEvery(steps) },
    metadata: values.metadata === 'on' ? true : undefined,
    image,
    mask,
    // Refused by the API without an input image.
    strength: image === undefined ? undefined : numberOf(values.strength),
    upscale: numberOf(values.upscale),
    loras,
    // JSON omits undefined fields.
  } as ImageRequest;
}

/** Converts a request to the form values that produce it. */
export function valuesOf(request: ImageRequest): FormValues {
  const [width = '', height = ''] = request.size?.split('x') ?? [];
  const others = [...texts, ...numbers].map((name) => [name, String(request[name] ?? '')] as const);
  const metadata = request.metadata === true ? ({ metadata: 'on' } as const) : {};
  return { ...(Object.fromEntries(others) as Record<Name, string>), width, height, ...metadata };
}

/** Returns the interval for about `wantedPreviews` previews. */
function previewEvery(steps: number | undefined): number {
  return typeof steps === 'number' && steps > 0 ? Math.min(1000, Math.max(1, Math.round(steps / wantedPreviews))) : 1;
}

/**
 * Trims a value; returns undefined if it is empty. Disabled fields have no value: empty lists, and fields that the
 * model does not support.
 */
function textOf(typed: string | undefined): string | undefined {
  return typed?.trim() || undefined;
}

/** Parses a number. Other text is sent unchanged, so that the API's error describes it. */
function numberOf(typed: string | undefined): number | undefined {
  const text = textOf(typed);
  if (text === undefined) return undefined;
  return Number.isFinite(Number(text)) ? Number(text) : (text as unknown as number);
}
