import type { PictureRequest } from '@darkroom/client';

const texts = ['prompt', 'negative_prompt', 'model', 'scheduler'] as const;
const numbers = ['num_inference_steps', 'guidance_scale', 'seed', 'n', 'strength', 'upscale'] as const;
type Name = (typeof texts)[number] | (typeof numbers)[number];

/** What stands in the form's fields, as typed. */
export type FormValues = Record<Name | 'width' | 'height', string> & {
  /** A box that is ticked; absent where it is not. */
  metadata?: 'on';
};

/** What a request has of the form that nobody types. */
export interface FormParts {
  image?: PictureRequest['image'] | undefined;
  mask?: PictureRequest['mask'] | undefined;
  loras?: PictureRequest['loras'] | undefined;
}

const wantedPreviews = 16;

/**
 * The request that a form asks for. An empty field is undefined, for the model's own value; only the seed is drawn here,
 * so that "same seed again" and the curl line know it at once. Nothing is checked: the API does, and says it in words.
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
    // Without a picture it means nothing, and is refused.
    strength: image === undefined ? undefined : numberOf(values.strength),
    upscale: numberOf(values.upscale),
    loras,
    // The JSON that it becomes has no undefined fields.
  } as PictureRequest;
}

/** The fields that make the same request again. */
export function valuesOf(request: PictureRequest): FormValues {
  const [width = '', height = ''] = request.size?.split('x') ?? [];
  const others = [...texts, ...numbers].map((name) => [name, String(request[name] ?? '')] as const);
  const metadata = request.metadata === true ? ({ metadata: 'on' } as const) : {};
  return { ...(Object.fromEntries(others) as Record<Name, string>), width, height, ...metadata };
}

/** Often enough to see it develop, seldom enough for a long run. */
function previewEvery(steps: number | undefined): number {
  return typeof steps === 'number' && steps > 0 ? Math.min(1000, Math.max(1, Math.round(steps / wantedPreviews))) : 1;
}

/** What is disabled is not among a form's values: lists that are empty yet, fields that the model has no use for. */
function textOf(typed: string | undefined): string | undefined {
  return typed?.trim() || undefined;
}

/** What is no number goes to the API as it is, which then says what it expected. */
function numberOf(typed: string | undefined): number | undefined {
  const text = textOf(typed);
  if (text === undefined) return undefined;
  return Number.isFinite(Number(text)) ? Number(text) : (text as unknown as number);
}
