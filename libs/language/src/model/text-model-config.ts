import type { TextCard, TextMode } from '@darkroom/kinds';
import { z } from 'zod';
import { checkModelJson, modelFileError, readModelJson, unlessMissing } from '@darkroom/runtime/model-file';

import { type ImageConfig, imageModelTypes, readImageConfig } from './image-config.ts';

/** Contents of a model's config.json and generation_config.json. */
export interface TextModelConfig {
  /** Model family: config.json's `model_type`. */
  readonly type: string;
  readonly mode: TextMode;
  /** Numbers per embedding. */
  readonly hiddenSize: number;
  /** Number of logits per position; token ids are below this. */
  readonly vocabularySize: number;
  readonly layers: number;
  /** Number of key/value heads. */
  readonly keyHeads: number;
  /** Size of one key. */
  readonly headWidth: number;
  /** Max tokens of prompt and text together. */
  readonly maxModelTokens: number;
  /** Token ids that end a text. */
  readonly endIds: readonly number[];
  /** The file that each end token comes from, for error messages. */
  readonly endIdSources: readonly { readonly file: string; readonly ids: readonly number[] }[];
  /** Defaults for fields that a request leaves out. */
  readonly defaults: TextCard['defaults'];
  /** Models that read images only. */
  readonly images?: ImageConfig;
  /** Block diffusion only. */
  readonly block?: { readonly size: number; readonly confidenceThreshold: number; readonly maskId: number };
}

/** Modes by `model_type`; SmolLM2's is llama. */
const modesOfTypes: ReadonlyMap<string, TextMode> = new Map([
  ...['llama', 'qwen2', 'qwen3', 'gemma3_text', 'phi', 'phi3'].map((type) => [type, 'autoregressive'] as const),
  ['block_diffusion', 'block_diffusion'],
]);

/** Default of max_new_tokens: the length of an answer, not of everything that fits. */
const defaultMaxTokens = 1024;

const count = z.number().int().min(1);
const idsSchema = z
  .union([z.number().int().min(0), z.array(z.number().int().min(0))])
  .nullish()
  .transform((ids) => (ids == null ? [] : [ids].flat()));
const configSchema = z.looseObject({
  model_type: z.string(),
  vocab_size: count,
  hidden_size: count,
  num_hidden_layers: count,
  num_attention_heads: count,
  num_key_value_heads: count.nullish(),
  head_dim: count.nullish(),
  max_position_embeddings: count,
  eos_token_id: idsSchema,
  block_size: count.optional(),
  mask_token_id: z.number().int().min(0).optional(),
  confidence_threshold: z.number().min(0).max(1).default(0.9),
});
const generationSchema = z.looseObject({
  eos_token_id: idsSchema,
  do_sample: z.boolean().nullish(),
  temperature: z.number().min(0).max(2).nullish(),
  top_p: z.number().gt(0).max(1).nullish(),
  top_k: z.number().int().min(0).nullish(),
  max_new_tokens: count.nullish(),
  confidence_threshold: z.number().min(0).max(1).nullish(),
});

/**
 * Reads both files.
 *
 * @throws DarkroomError `model_unsupported` naming the file and the field.
 */
export async function readTextModelConfig(directory: string): Promise<TextModelConfig> {
  const [json, generationJson = {}] = await Promise.all([
    readModelJson(directory, 'config.json'),
    unlessMissing(readModelJson(directory, 'generation_config.json')),
  ]);
  const images = await readImageConfig(directory, json);
  const config = checkModelJson('config.json', images === undefined ? json : textConfigOf(json), configSchema);
  const generation = checkModelJson('generation_config.json', generationJson, generationSchema);
  const mode = modeOf(config.model_type);
  const { do_sample: samples, temperature, top_p: topP, top_k: topK } = generation;
  const isGreedy = samples === false;
  return {
    type: (json as { model_type: string }).model_type,
    mode,
    hiddenSize: config.hidden_size,
    vocabularySize: config.vocab_size,
    layers: config.num_hidden_layers,
    keyHeads: config.num_key_value_heads ?? config.num_attention_heads,
    headWidth: config.head_dim ?? config.hidden_size / config.num_attention_heads,
    maxModelTokens: config.max_position_embeddings,
    endIds: [...new Set([...generation.eos_token_id, ...config.eos_token_id])],
    endIdSources: [
      { file: 'generation_config.json', ids: generation.eos_token_id },
      { file: 'config.json', ids: config.eos_token_id },
    ],
    defaults: {
      maxTokens: generation.max_new_tokens ?? defaultMaxTokens,
      temperature: isGreedy ? 0 : (temperature ?? 1),
      topP: (isGreedy ? undefined : topP) ?? 1,
      topK: (isGreedy ? undefined : topK) ?? 0,
    },
    ...(images && { images }),
    ...(mode === 'block_diffusion' && { block: blockOf(config, generation.confidence_threshold) }),
  };
}

/** Returns the text model's part of a config.json with images; some fields are beside it. */
function textConfigOf(json: unknown): object {
  const { text_config: text, ...others } = json as { text_config?: object };
  return { ...others, ...text };
}

function modeOf(type: string): TextMode {
  const mode = modesOfTypes.get(type);
  if (mode !== undefined) return mode;
  const supported = [...modesOfTypes.keys(), ...imageModelTypes].join(', ');
  throw modelFileError('config.json', `model_type: ${type} is not supported; supported are ${supported}`);
}

function blockOf(
  config: z.infer<typeof configSchema>,
  threshold: number | null | undefined,
): NonNullable<TextModelConfig['block']> {
  const { block_size: size, mask_token_id: maskId, vocab_size: vocabulary } = config;
  if (size === undefined) throw modelFileError('config.json', 'block_size: is missing');
  if (maskId === undefined) throw modelFileError('config.json', 'mask_token_id: is missing');
  if (maskId >= vocabulary)
    throw modelFileError('config.json', `mask_token_id: ${maskId} is not below vocab_size, ${vocabulary}`);
  return { size, maskId, confidenceThreshold: threshold ?? config.confidence_threshold };
}
