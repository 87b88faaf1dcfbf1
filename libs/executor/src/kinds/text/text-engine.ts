import { describeGraphFile } from '@darkroom/diffusion/model-files';
import { text, type TextCard, type TextCodec } from '@darkroom/kinds';
import { isTextModel, readTextModelDirectory } from '@darkroom/language/model-files';
import type { Capacity, CapacityLimits, DescribedModel, EngineKind, LoadModelOptions } from '../../engine-kind.ts';

/** Share of the available memory that KV caches may use. */
const cacheShare = 0.25;
/** Smaller caches hold no useful text. */
const minTokens = 256;
/** Smaller weights run on one thread: a second gains nothing (emoji-writer: 1.5 ms per token with either). */
const singleThreadBytes = 20e6;

/** Texts: slots are tokens of KV cache. */
export const textEngine: EngineKind = {
  id: text.id,
  // Measured on Linux with tiny models.
  memory: { processBytes: 100e6, weightFactor: 1 },
  detect: isTextModel,
  describe: describeText,
  capacity: textCapacity,
  async load({ maxSlots: maxTokens, memorySlots: memoryTokens, ...options }) {
    const { loadTextPipeline } = await import('@darkroom/language');
    return loadTextPipeline({ ...options, maxTokens, memoryTokens });
  },
  encode: ({ data }) => Promise.resolve({ data, contentType: 'text/plain; charset=utf-8' }),
};

async function describeText({ directory, id, dtypes, devices }: LoadModelOptions): Promise<DescribedModel> {
  const model = await readTextModelDirectory(directory, { id, dtypes, devices });
  const { card, codec, codecDocument: bytes, graph, imageGraphs, config } = model;
  const { layers, keyHeads, headWidth } = config;
  const graphs = [graph, ...Object.values(imageGraphs ?? {})].map((file) => describeGraphFile(directory, file));
  const found = { level: 'info', message: 'text model found', fields: { mode: card.mode, file: graph } } as const;
  const reason = card.hasChatTemplate ? findTemplateError(codec) : undefined;
  const message = 'the chat template rejects every message: chat requests will fail';
  return {
    card,
    asset: { name: card.codec, bytes },
    files: graphs.flatMap(({ files }) => files),
    weightBytes: graphs.reduce((sum, { bytes: size }) => sum + size, 0),
    // Keys and values, fp32: 2 × 4 bytes.
    slotBytes: 2 * layers * keyHeads * headWidth * 4,
    notes: reason === undefined ? [found] : [found, { level: 'warn', message, fields: { reason } }],
  };
}

/** Returns why the template rejects the simplest chat, or undefined if it does not. */
function findTemplateError(codec: TextCodec): string | undefined {
  try {
    codec.renderChat([{ role: 'user', content: 'Hi' }]);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

/**
 * Returns enough tokens for a full batch of full-length texts, or as many as memory allows; then no text may be longer
 * than that. Rows share buffers padded to the longest row, so memory has its own limit.
 */
function textCapacity(
  { card, slotBytes = 0, weightBytes }: DescribedModel,
  { batchMaxSize, kvTokens, availableBytes }: CapacityLimits,
): Capacity {
  const { maxModelTokens } = card as TextCard;
  const minimum = Math.min(minTokens, maxModelTokens);
  const memorySlots = kvTokens ?? Math.max(minimum, Math.floor((cacheShare * availableBytes) / slotBytes));
  const slots = kvTokens ?? Math.min(memorySlots, batchMaxSize * maxModelTokens);
  const limited: TextCard = { ...(card as TextCard), maxModelTokens: Math.min(maxModelTokens, slots) };
  return { slots, memorySlots, card: limited, ...(weightBytes < singleThreadBytes && { threads: 1 }) };
}
