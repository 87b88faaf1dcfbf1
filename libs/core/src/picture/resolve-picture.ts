import { type FieldProblem, fieldProblems, invalidValue } from '../errors/field-problem.ts';
import type { ModelCard } from '../model/model-card.ts';
import type { PictureInput } from './picture-input.ts';
import {
  defaultOutputCompression,
  defaultPreviewEvery,
  defaultPriority,
  type PictureRequest,
  pictureSchema,
} from './picture-schema.ts';
import { resolveWebhook, webhookProblems, type WebhookRequest } from '../request/webhook.ts';

export interface ResolvePictureOptions {
  /** The models there are, in the order of preference for a request that names none. */
  cards: readonly ModelCard[];
  /** The model of a request that names none, in place of the first. */
  defaultModel?: string | undefined;
  /** Seconds. */
  timeoutS: { default: number; max: number };
  /** Whether webhooks may go to private addresses, and the least time between two of progress. */
  webhooks: { allowPrivate: boolean; progressIntervalMs: number };
  /** The seed of a request that brings none, 0 to 2³²−1. */
  drawSeed: () => number;
}

/** What a request asks for, with every default filled in. */
export interface ResolvedPicture {
  model: string;
  input: PictureInput;
  priority: number;
  timeoutS: number;
  /** Never more than `timeoutS`. */
  startTimeoutS: number;
  webhook: WebhookRequest | undefined;
}

export type ResolvePictureResult =
  | { status: 'resolved'; picture: ResolvedPicture }
  | { status: 'invalid'; problems: readonly FieldProblem[] }
  | { status: 'unknown-model'; model: string };

/** Checks a request's body against the schema and then against what its model can do. */
export function resolvePicture(body: unknown, options: ResolvePictureOptions): ResolvePictureResult {
  const { cards, defaultModel, timeoutS, webhooks } = options;
  const parsed = pictureSchema.safeParse(body);
  const named = parsed.success ? parsed.data.model : namedModel(body);
  const model = named ?? defaultModel ?? cards[0]?.id ?? '';
  const card = cards.find(({ id }) => id === model);
  const expected = expectations(card, timeoutS.max);
  if (!parsed.success) {
    const known = Object.keys(pictureSchema.shape);
    return { status: 'invalid', problems: fieldProblems(parsed.error.issues, { body, known, expected }) };
  }
  if (card === undefined) return { status: 'unknown-model', model };
  const problems = [
    ...limitProblems(parsed.data, { card, timeoutMaxS: timeoutS.max, expected }),
    ...webhookProblems(parsed.data, webhooks),
  ];
  if (problems.length > 0) return { status: 'invalid', problems };
  return { status: 'resolved', picture: fillDefaults(parsed.data, card, options) };
}

function namedModel(body: unknown): string | undefined {
  if (typeof body !== 'object' || body === null || !('model' in body)) return undefined;
  return typeof body.model === 'string' ? body.model : undefined;
}

/** What the fields take whose limits the schema cannot know. */
function expectations(card: ModelCard | undefined, timeoutMaxS: number): Record<string, string> {
  const seconds = `a number of seconds from 0.1 to ${timeoutMaxS}`;
  const expected: Record<string, string> = { timeout_s: seconds, start_timeout_s: seconds };
  if (card === undefined) return expected;
  const { sizes, steps, guidance, schedulers } = card;
  expected['size'] =
    `"auto" or "WIDTHxHEIGHT", each side a multiple of ${sizes.multiple} from ${sizes.min} to ${sizes.max}`;
  expected['num_inference_steps'] = `a whole number from ${steps.min} to ${steps.max}`;
  expected['guidance_scale'] = `a number from ${guidance.min} to ${guidance.max}`;
  expected['scheduler'] = `one of ${schedulers.join(', ')}`;
  return expected;
}

function limitProblems(
  request: PictureRequest,
  { card, timeoutMaxS, expected }: { card: ModelCard; timeoutMaxS: number; expected: Record<string, string> },
): FieldProblem[] {
  const { sizes, steps, guidance, schedulers } = card;
  const isSide = (pixels: number): boolean =>
    pixels >= sizes.min && pixels <= sizes.max && pixels % sizes.multiple === 0;
  const { width, height } = sizeOf(request, card);
  const isAllowed: Partial<Record<keyof PictureRequest, boolean>> = {
    size: isSide(width) && isSide(height),
    num_inference_steps: isWithin(request.num_inference_steps, steps),
    guidance_scale: isWithin(request.guidance_scale, guidance),
    scheduler: request.scheduler === undefined || schedulers.includes(request.scheduler),
    timeout_s: (request.timeout_s ?? 0) <= timeoutMaxS,
    start_timeout_s: (request.start_timeout_s ?? 0) <= timeoutMaxS,
  };
  return (Object.keys(isAllowed) as (keyof PictureRequest)[])
    .filter((field) => !isAllowed[field])
    .map((field) => invalidValue(field, request[field], expected[field] ?? ''));
}

function isWithin(value: number | undefined, { min, max }: { min: number; max: number }): boolean {
  return value === undefined || (value >= min && value <= max);
}

function sizeOf({ size = 'auto' }: PictureRequest, card: ModelCard): { width: number; height: number } {
  if (size === 'auto') return card.sizes.default;
  const [width = 0, height = 0] = size.split('x').map(Number);
  return { width, height };
}

function fillDefaults(
  request: PictureRequest,
  card: ModelCard,
  { timeoutS, webhooks, drawSeed }: ResolvePictureOptions,
): ResolvedPicture {
  const preview = request.preview ?? { every: defaultPreviewEvery };
  const timeout = request.timeout_s ?? timeoutS.default;
  const { width, height } = sizeOf(request, card);
  return {
    model: card.id,
    input: {
      prompt: request.prompt,
      negativePrompt: request.negative_prompt ?? '',
      width,
      height,
      n: request.n ?? 1,
      numInferenceSteps: request.num_inference_steps ?? card.steps.default,
      guidanceScale: request.guidance_scale ?? card.guidance.default,
      guidanceRescale: request.guidance_rescale ?? 0,
      seed: request.seed ?? drawSeed(),
      scheduler: request.scheduler ?? card.defaultScheduler,
      outputFormat: request.output_format ?? 'png',
      outputCompression: request.output_compression ?? defaultOutputCompression,
      previewEvery: preview === 'off' ? 0 : preview.every,
    },
    priority: request.priority ?? defaultPriority,
    timeoutS: timeout,
    startTimeoutS: Math.min(request.start_timeout_s ?? timeout, timeout),
    webhook: resolveWebhook(request, webhooks.progressIntervalMs),
  };
}
