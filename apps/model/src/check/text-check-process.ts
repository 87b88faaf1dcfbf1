/** Loads a text model and writes a sentence, in its own process, as check-process.ts does for images. */
import { sendToParent } from '@darkroom/core';
import type { PipelineComponent } from '@darkroom/core';
import type { TextCard, TextInput, TextOutputFacts } from '@darkroom/kinds';
import { loadTextPipeline, readTextModelDirectory, type TextPipeline } from '@darkroom/language';
import { serveRequest } from '../command/serve-request.ts';
import type { TriedModel } from './tried-model.ts';
import { type CheckMeasurement, measured } from './measured.ts';

/** Parts of the check, in order. */
export type TextCheckPart = 'load' | 'read' | 'write';

/** Measurements by part, and the text. The process sends it in several messages. */
export interface TextCheckResult extends Record<TextCheckPart, CheckMeasurement> {
  components: readonly PipelineComponent[];
  deterministic: TextCard['deterministic'];
  text: string;
  facts: TextOutputFacts;
}

const instruction = 'Write a sentence about the sea.';
const textPrefix = 'Once upon a time';
/** Limit for models that do not end the text. */
const tokenLimit = 48;

async function check({ model }: { model: TriedModel }): Promise<void> {
  const pipeline = await measured('load', () => loadTextPipeline(model));
  const { components, card } = pipeline;
  await sendToParent({ components, deterministic: card.deterministic } satisfies Partial<TextCheckResult>);
  const [row] = await pipeline.createRows({ id: 'check', input: await inputFor(model, card) });
  const step = () => stepOnce(pipeline, row!);
  await measured('read', async () => {
    while (row!.written.tokens.length === 0 && row!.calls === 0) await step();
  });
  await measured('write', async () => {
    while (!row!.isDone) await step();
  });
  const { data, facts } = await pipeline.finish(row!);
  await sendToParent({ text: new TextDecoder().decode(data), facts: facts as unknown as TextOutputFacts });
}

async function inputFor(model: TriedModel, card: TextCard): Promise<TextInput> {
  const { codec } = await readTextModelDirectory(model.directory, model);
  const prompt = card.hasChatTemplate
    ? codec.encode(codec.renderChat([{ role: 'user', content: instruction }]), { addSpecialTokens: false })
    : codec.encode(textPrefix, { addSpecialTokens: true });
  const maxTokens = Math.min(tokenLimit, card.maxModelTokens - prompt.length);
  const greedy = { temperature: 0, topP: 1, topK: 0, minP: 0, presencePenalty: 0, frequencyPenalty: 0 };
  return { prompt, n: 1, maxTokens, ...greedy, logitBias: {}, seed: 0, stop: [], ignoreEos: false };
}

async function stepOnce(pipeline: TextPipeline, row: Parameters<TextPipeline['step']>[0][number]): Promise<void> {
  const { failures } = await pipeline.step([row]);
  for (const error of failures.values()) throw error;
}

serveRequest(check);
