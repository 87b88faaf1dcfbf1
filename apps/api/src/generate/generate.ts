/** `POST /generate`: a text with its tokens, as a view of an ordinary request. */
import type { ModelCard } from '@darkroom/core';
import { type TextCard, text as textKind } from '@darkroom/kinds';
import type { ApiContext } from '../context/context.ts';
import { heartbeatFrame, sseFrame } from '../follow/sse-frame.ts';
import { invalidField } from '../http/api-error.ts';
import type { Route } from '../openapi/api-route.ts';
import { readJsonBody } from '../body/read-json-body.ts';
import { answerStored, streamStored } from '../answer/answer-stored.ts';
import { textChanged } from '../answer/stored-request-error.ts';
import { followTexts } from '../openai/text/follow-texts.ts';
import type { ClientWatch } from '../answer/watch-client.ts';
import type { Submission } from '../submit/submit-request.ts';
import { generateDocument } from './generate-document.ts';
import { type GenerateAnswer, parseGenerateBody, type StreamMode } from './generate-schema.ts';
import { GeneratedText } from './generated-text.ts';

export const generateRoute: Route = {
  ...generateDocument,
  async handle(c, context) {
    const { text, isStream, mode } = parseGenerateBody(await readJsonBody(c, context.config.maxBodyBytes));
    const submission: Submission = {
      body: text,
      kind: textKind.id,
      canServe: (card) => mode !== 'denoise' || isBlockDiffusion(card),
      refine: refineFor(mode),
    };
    if (!isStream) return answerStored(c, context, submission, ({ id }, watch) => generatedAnswer(context, id, watch));
    return streamStored(c, context, submission, ({ id }, watch) => generatedFrames(context, { id, watch, mode }));
  },
};

function isBlockDiffusion(card: ModelCard): boolean {
  return (card as TextCard).mode === 'block_diffusion';
}

/** Returns a hook that rejects `denoise` for models that do not support it. */
function refineFor(mode: StreamMode): NonNullable<Submission['refine']> {
  return (input, card) => {
    if (mode === 'denoise' && !isBlockDiffusion(card))
      throw invalidField(
        'stream_mode',
        mode,
        `"block_append": ${card.id} is autoregressive and has no blocks to denoise`,
      );
    return input;
  };
}

async function generatedAnswer(context: ApiContext, id: string, watch: ClientWatch): Promise<GenerateAnswer> {
  const text = new GeneratedText(id);
  for await (const item of followTexts(context, { id, watch })) if (item !== 'heartbeat') text.take(item);
  return text.answer;
}

async function* generatedFrames(
  context: ApiContext,
  { id, watch, mode }: { id: string; watch: ClientWatch; mode: StreamMode },
): AsyncGenerator<string, void> {
  const text = new GeneratedText(id);
  // The position in the request's event log, after which `GET /v1/predict/{id}/events` can resume.
  let position = '0-0';
  for await (const item of followTexts(context, { id, watch })) {
    if (item === 'heartbeat') {
      yield heartbeatFrame;
      continue;
    }
    if (item.type === 'taken-back') throw textChanged(id);
    position = `${item.sequence}-0`;
    const { append, snapshot } = text.take(item);
    if (mode === 'block_append' && append !== undefined)
      yield sseFrame({ event: 'append', id: position, data: append });
    if (mode === 'denoise' && snapshot !== undefined)
      yield sseFrame({ event: 'buffer_snapshot', id: position, data: snapshot });
  }
  yield sseFrame({ event: 'final', id: position, data: text.answer });
}
