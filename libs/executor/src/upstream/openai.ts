/** OpenAI-compatible servers: `/v1/models`, and the routes of texts and images. */
import type { ModelCard, RowOutput } from '@darkroom/core';
import {
  type ImageCard,
  type ImageInput,
  imageOptions,
  type UpstreamTextCard,
  type UpstreamTextInput,
  writtenCalls,
} from '@darkroom/kinds';
import type { CallEvent } from '../calls/backend-client.ts';
import { withInlineImages } from '../calls/inline-images.ts';
import { fieldOf, listProperty, numberProperty, textProperty } from './http/fields.ts';
import { type ImageRoutes, readImageRoutes } from './image-routes.ts';
import { type ImageDialect, optionFields, runOpenaiImage } from './openai-images.ts';
import { runOpenaiText, type TextDialect } from './openai-texts.ts';
import { UpstreamError } from '../calls/backend-error.ts';
import type { UpstreamCall, UpstreamInfo, UpstreamProtocol, UpstreamProtocolOptions } from './upstream-protocol.ts';

/** OpenAI's image models: they list no capabilities, and reject unknown fields. */
const openaiImages = /^(?:gpt-image|chatgpt-image)/;
const sizePattern = /^(\d+)x(\d+)$/;
/** Step count of an image whose steps are unknown: up to three partial images, and the result. */
const countedSteps = 4;
/** Limits of vLLM-omni, and defaults of most models: servers do not list theirs. */
const foreignSteps = { min: 1, max: 200, default: 30 };
const foreignGuidance = { min: 0, max: 20, default: 4 };
/** Max number of models named in an error. */
const maxNamed = 20;

/** The model, once it is found at the server. */
interface KnownModel {
  /** The model's id at the server. */
  id: string;
  card: ModelCard;
  dialect: TextDialect & ImageDialect;
}

export function createOpenai({ http, model }: UpstreamProtocolOptions): UpstreamProtocol {
  let known: KnownModel | undefined;
  /** Fields that the server has rejected, although it lists them. */
  const rejected = new Set<string>();

  async function listModels(signal: AbortSignal): Promise<readonly unknown[]> {
    const list = await http.get('/v1/models', signal);
    if (Array.isArray(fieldOf(list, 'data'))) return listProperty(list, 'data');
    throw new UpstreamError(
      'model_unsupported',
      'answers /v1/models without data, expected an OpenAI-compatible server (UPSTREAM_API=openai)',
    );
  }

  async function describe(signal: AbortSignal): Promise<UpstreamInfo> {
    const entries = await listModels(signal);
    const routes = await readImageRoutes(http, signal);
    const entry =
      entries.find((each) => textProperty(each, 'id') === model) ?? entries.find((each) => idOf(each) === model);
    if (entry === undefined) {
      const ids = entries.slice(0, maxNamed).map((each) => idOf(each));
      const expected = ids.length === 0 ? 'it has none' : `expected MODEL_ID to be one of ${ids.join(', ')}`;
      throw new UpstreamError('model_unsupported', `has no model ${model}: ${expected}`);
    }
    known = knownModel(entry, { model, routes, rejected });
    return { card: known.card };
  }

  function run(
    { input, index, attachments }: UpstreamCall,
    signal: AbortSignal,
  ): AsyncGenerator<CallEvent, RowOutput, void> {
    if (known === undefined) throw new Error('the upstream was called before its model was known');
    const { id, card, dialect } = known;
    const call = { model: id, index, dialect };
    if (card.kind === 'text')
      return runOpenaiText(http, { ...call, input: withInlineImages(input as UpstreamTextInput, attachments) }, signal);
    return runOpenaiImage(http, { ...call, input: input as ImageInput, attachments, rejected }, signal);
  }

  return { describe, check: async (signal) => void (await listModels(signal)), run };
}

/**
 * Derives a model's card and dialect from its entry: Darkroom lists capabilities; llama.cpp and vLLM show in
 * `owned_by`.
 */
function knownModel(
  entry: unknown,
  { model, routes, rejected }: { model: string; routes: ImageRoutes; rejected: ReadonlySet<string> },
): KnownModel {
  const id = textProperty(entry, 'id') ?? model;
  const owner = textProperty(entry, 'owned_by');
  const isDarkroom = ['text', 'image'].includes(textProperty(entry, 'kind') ?? '');
  const isLlamaCpp = owner === 'llamacpp';
  const takesGrammar = isDarkroom || isLlamaCpp;
  const takes = { takesGrammar, takesFormatOfPrompt: takesGrammar || owner === 'vllm' };
  const hasStream = isDarkroom || openaiImages.test(id);
  const isDiffusion = routes.generations.size > 0 && numberProperty(entry, 'max_model_len') === undefined;
  if (!isOfImages(entry) && !isDiffusion) {
    const card = { ...textCard(entry, model), ...takes };
    return { id, card, dialect: { isLlamaCpp, hasDarkroomFields: false, hasStream, fields: new Set() } };
  }
  const listed = [...optionFields].filter((field) => routes.generations.has(field) && !rejected.has(field));
  const fields = new Set<string>(isDarkroom || hasStream ? [] : listed);
  const canEdit = fields.size > 0 && routes.edits.has('image') && !rejected.has('image');
  const card = isDarkroom ? imageCard(entry, model) : foreignCard(imageCard(entry, model), fields, canEdit);
  return { id, card, dialect: { isLlamaCpp, hasDarkroomFields: isDarkroom, hasStream, fields } };
}

/**
 * Converts a server's model id to ours: the last path segment in lower case, other characters as `-`. `Qwen/Qwen3-0.6B`
 * becomes `qwen3-0.6b`.
 */
function idOf(entry: unknown): string {
  const id = textProperty(entry, 'id') ?? '';
  return id
    .slice(id.lastIndexOf('/') + 1)
    .toLowerCase()
    .replaceAll(/[^a-z0-9._-]/g, '-');
}

/** Returns true for an image model, by the fields in which various servers mark one. */
function isOfImages(entry: unknown): boolean {
  const modalities = listProperty(fieldOf(entry, 'architecture'), 'output_modalities');
  return (
    textProperty(entry, 'kind') === 'image' ||
    textProperty(entry, 'type') === 'image' ||
    (modalities.includes('image') && !modalities.includes('text')) ||
    openaiImages.test(textProperty(entry, 'id') ?? '')
  );
}

function baseCard(entry: unknown, id: string) {
  const ownedBy = textProperty(entry, 'owned_by') ?? 'upstream';
  return { id, created: numberProperty(entry, 'created') ?? 0, ownedBy, pipeline: 'openai' };
}

function textCard(entry: unknown, model: string): UpstreamTextCard {
  // llama.cpp's server reports both in `meta`.
  const meta = fieldOf(entry, 'meta');
  const maxModelTokens = numberProperty(entry, 'max_model_len') ?? numberProperty(meta, 'n_ctx');
  const vocabularySize = numberProperty(entry, 'vocabulary_size') ?? numberProperty(meta, 'n_vocab');
  const hasTools = fieldOf(entry, 'has_tools');
  return {
    ...baseCard(entry, model),
    kind: 'text',
    mode: 'autoregressive',
    ...(maxModelTokens !== undefined && { maxModelTokens }),
    ...(vocabularySize !== undefined && { vocabularySize }),
    ...takesOf(entry),
    hasChatTemplate: fieldOf(entry, 'has_chat_template') !== false,
    ...(typeof hasTools === 'boolean' && { hasTools }),
    calls: hasTools === false ? { reason: 'its server says so' } : { markup: writtenCalls },
    deterministic: { is: false, reason: 'another server runs it' },
  };
}

/** Returns whether a text model takes images, by the fields in which various servers say so. */
function takesOf(entry: unknown): Pick<UpstreamTextCard, 'takes'> {
  // Another Darkroom has `takes`, OpenRouter `input_modalities`, LM Studio a type.
  const listed = fieldOf(entry, 'takes') ?? fieldOf(fieldOf(entry, 'architecture'), 'input_modalities');
  const type = textProperty(entry, 'type');
  if (type === 'vlm' || (Array.isArray(listed) && listed.includes('image'))) return { takes: ['image'] };
  return Array.isArray(listed) || type === 'llm' ? { takes: [] } : {};
}

/**
 * Builds the card of an image model. If the server lists no capabilities, only prompt and size can be set; the API
 * rejects other fields.
 */
function imageCard(entry: unknown, model: string): ImageCard {
  const [sizes, steps, guidance, defaults] = ['sizes', 'steps', 'guidance', 'defaults'].map((name) =>
    fieldOf(entry, name),
  );
  const [, width = '1024', height = '1024'] = sizePattern.exec(textProperty(defaults, 'size') ?? '') ?? [];
  const scheduler = textProperty(defaults, 'scheduler') ?? 'upstream';
  return {
    ...baseCard(entry, model),
    kind: 'image',
    sizes: {
      multiple: numberProperty(sizes, 'multiple') ?? 1,
      ...range(sizes, 64, 4096),
      default: { width: Number(width), height: Number(height) },
    },
    steps: {
      ...range(steps, countedSteps, countedSteps),
      default: numberProperty(defaults, 'num_inference_steps') ?? countedSteps,
    },
    guidance: { ...range(guidance, 1, 1), default: numberProperty(defaults, 'guidance_scale') ?? 1 },
    // The route has no field for a scheduler.
    schedulers: [scheduler],
    defaultScheduler: scheduler,
    maxPromptTokens: numberProperty(entry, 'max_prompt_tokens') ?? 0,
  };
}

/** Restricts or extends the card of another vendor's server to the fields that it takes. */
function foreignCard(card: ImageCard, fields: ReadonlySet<string>, canEdit: boolean): ImageCard {
  // A server without a list may take any field.
  const options = imageOptions.filter((field) => fields.size > 0 && !fields.has(field));
  return {
    ...card,
    ...(fields.has('num_inference_steps') && { steps: foreignSteps }),
    ...(fields.has('guidance_scale') && { guidance: foreignGuidance }),
    ...(canEdit && { takes: ['image'] }),
    ...(options.length > 0 && { unsupported: options }),
  };
}

function range(limits: unknown, from: number, to: number): { min: number; max: number } {
  return { min: numberProperty(limits, 'min') ?? from, max: numberProperty(limits, 'max') ?? to };
}
