/** Servers that speak as OpenAI's: `/v1/models`, and the routes of texts and pictures. */
import type { ModelCard, RowOutput } from '@darkroom/core';
import {
  type PictureCard,
  type PictureInput,
  type UpstreamTextCard,
  type UpstreamTextInput,
  writtenCalls,
} from '@darkroom/kinds';
import type { Said } from '../calls/caller.ts';
import { fieldOf, listOf, numberOf, textOf } from './fields.ts';
import { type PictureDialect, runOpenaiPicture } from './openai-pictures.ts';
import { runOpenaiText, type TextDialect } from './openai-texts.ts';
import { UpstreamError } from './upstream-error.ts';
import type { UpstreamCall, UpstreamFacts, UpstreamProtocol, UpstreamProtocolOptions } from './upstream-protocol.ts';

/** OpenAI's own say nothing of what they make, and take nothing that they do not know. */
const openaiPictures = /^(?:gpt-image|chatgpt-image)/;
const sizePattern = /^(\d+)x(\d+)$/;
/** What a picture is counted in where nobody knows its steps: up to three views of it, and itself. */
const countedSteps = 4;
/** Models in an error. */
const mostNamed = 20;

/** What is asked of a model, once it is known. */
interface KnownModel {
  /** As the server has it. */
  id: string;
  card: ModelCard;
  dialect: TextDialect & PictureDialect;
}

export function createOpenai({ http, model }: UpstreamProtocolOptions): UpstreamProtocol {
  let known: KnownModel | undefined;

  async function listModels(signal: AbortSignal): Promise<readonly unknown[]> {
    const list = await http.get('/v1/models', signal);
    if (Array.isArray(fieldOf(list, 'data'))) return listOf(list, 'data');
    throw new UpstreamError(
      'model_unsupported',
      "answers /v1/models without data, expected a server that speaks as OpenAI's (UPSTREAM_API=openai)",
    );
  }

  async function describe(signal: AbortSignal): Promise<UpstreamFacts> {
    const entries = await listModels(signal);
    const entry = entries.find((each) => textOf(each, 'id') === model) ?? entries.find((each) => idOf(each) === model);
    if (entry === undefined) {
      const ids = entries.slice(0, mostNamed).map((each) => idOf(each));
      const expected = ids.length === 0 ? 'it has none' : `expected MODEL_ID to be one of ${ids.join(', ')}`;
      throw new UpstreamError('model_unsupported', `has no model ${model}: ${expected}`);
    }
    known = knownModel(entry, model);
    return { card: known.card };
  }

  function run({ input, index }: UpstreamCall, signal: AbortSignal): AsyncGenerator<Said, RowOutput, void> {
    const { id, card, dialect } = known!;
    const ask = { model: id, index, dialect };
    if (card.kind === 'text') return runOpenaiText(http, { ...ask, input: input as UpstreamTextInput }, signal);
    return runOpenaiPicture(http, { ...ask, input: input as PictureInput }, signal);
  }

  return { describe, check: async (signal) => void (await listModels(signal)), run };
}

/** Another Darkroom says what its models make; llama.cpp and vLLM say who they are. */
function knownModel(entry: unknown, model: string): KnownModel {
  const id = textOf(entry, 'id') ?? model;
  const owner = textOf(entry, 'owned_by');
  const isDarkroom = ['text', 'picture'].includes(textOf(entry, 'kind') ?? '');
  const hasBareSchema = owner === 'llamacpp';
  const takesGrammar = isDarkroom || hasBareSchema;
  const takes = { takesGrammar, takesFormatOfPrompt: takesGrammar || owner === 'vllm' };
  const hasStream = isDarkroom || openaiPictures.test(id);
  const card = isOfPictures(entry) ? pictureCard(entry, model) : { ...textCard(entry, model), ...takes };
  return { id, card, dialect: { hasBareSchema, hasOurFields: isDarkroom, hasStream } };
}

/** The name of a model here: of `Qwen/Qwen3-0.6B` its last part in small letters, with `-` for what ids here cannot hold. */
function idOf(entry: unknown): string {
  const id = textOf(entry, 'id') ?? '';
  return id
    .slice(id.lastIndexOf('/') + 1)
    .toLowerCase()
    .replaceAll(/[^a-z0-9._-]/g, '-');
}

/** Another Darkroom says what its models make; some others do in one of these ways. */
function isOfPictures(entry: unknown): boolean {
  const modalities = listOf(fieldOf(entry, 'architecture'), 'output_modalities');
  return (
    textOf(entry, 'kind') === 'picture' ||
    textOf(entry, 'type') === 'image' ||
    (modalities.includes('image') && !modalities.includes('text')) ||
    openaiPictures.test(textOf(entry, 'id') ?? '')
  );
}

function baseCard(entry: unknown, id: string) {
  const ownedBy = textOf(entry, 'owned_by') ?? 'upstream';
  return { id, created: numberOf(entry, 'created') ?? 0, ownedBy, pipeline: 'openai' };
}

function textCard(entry: unknown, model: string): UpstreamTextCard {
  // llama.cpp's server says both in `meta`.
  const meta = fieldOf(entry, 'meta');
  const maxModelTokens = numberOf(entry, 'max_model_len') ?? numberOf(meta, 'n_ctx');
  const vocabularySize = numberOf(entry, 'vocabulary_size') ?? numberOf(meta, 'n_vocab');
  const hasTools = fieldOf(entry, 'has_tools');
  return {
    ...baseCard(entry, model),
    kind: 'text',
    mode: 'autoregressive',
    ...(maxModelTokens !== undefined && { maxModelTokens }),
    ...(vocabularySize !== undefined && { vocabularySize }),
    hasChatTemplate: fieldOf(entry, 'has_chat_template') !== false,
    ...(typeof hasTools === 'boolean' && { hasTools }),
    calls: hasTools === false ? { reason: 'its server says so' } : { markup: writtenCalls },
    deterministic: { is: false, reason: 'another server runs it' },
  };
}

/** Of a server that says nothing of its models only the prompt and the size can be chosen: the door refuses the rest. */
function pictureCard(entry: unknown, model: string): PictureCard {
  const [sizes, steps, guidance, defaults] = ['sizes', 'steps', 'guidance', 'defaults'].map((name) =>
    fieldOf(entry, name),
  );
  const [, width = '1024', height = '1024'] = sizePattern.exec(textOf(defaults, 'size') ?? '') ?? [];
  const scheduler = textOf(defaults, 'scheduler') ?? 'upstream';
  return {
    ...baseCard(entry, model),
    kind: 'picture',
    sizes: {
      multiple: numberOf(sizes, 'multiple') ?? 1,
      ...range(sizes, 64, 4096),
      default: { width: Number(width), height: Number(height) },
    },
    steps: {
      ...range(steps, countedSteps, countedSteps),
      default: numberOf(defaults, 'num_inference_steps') ?? countedSteps,
    },
    guidance: { ...range(guidance, 1, 1), default: numberOf(defaults, 'guidance_scale') ?? 1 },
    // The route has no field for it.
    schedulers: [scheduler],
    defaultScheduler: scheduler,
    maxPromptTokens: numberOf(entry, 'max_prompt_tokens') ?? 0,
  };
}

function range(of: unknown, from: number, to: number): { min: number; max: number } {
  return { min: numberOf(of, 'min') ?? from, max: numberOf(of, 'max') ?? to };
}
