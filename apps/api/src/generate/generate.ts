/** `POST /generate`: a text with its tokens, as a view of a request like any other. */
import { type TextCard, text as textKind } from '@darkroom/kinds';
import type { ApiContext } from '../context.ts';
import { heartbeatFrame, sseFrame } from '../follow/sse-frame.ts';
import { invalidField } from '../http/api-error.ts';
import type { Route } from '../http/api-route.ts';
import { readJsonBody } from '../http/read-json-body.ts';
import { answerStored, streamStored } from '../follow/answer-stored.ts';
import { textChanged } from '../follow/stored-request-error.ts';
import { followTexts } from '../openai/text/follow-texts.ts';
import type { ClientWatch } from '../follow/watch-client.ts';
import type { Submission } from '../submit/submit-request.ts';
import { generateDocument } from './generate-document.ts';
import { type GenerateAnswer, parseGenerateBody, type StreamMode } from './generate-schema.ts';
import { GeneratedText } from './generated-text.ts';

export const generateRoute: Route = {
  ...generateDocument,
  async handle(c, context) {
    const { text, isStream, mode } = parseGenerateBody(await readJsonBody(c, context.config.maxBodyBytes));
    const submission: Submission = { body: text, kind: textKind.id, refine: refineFor(mode) };
    if (!isStream) return answerStored(c, context, submission, ({ id }, watch) => generatedAnswer(context, id, watch));
    return streamStored(c, context, submission, ({ id }, watch) => generatedFrames(context, { id, watch, mode }));
  },
};

/** Refuses a mode that the model has not. */
function refineFor(mode: StreamMode): NonNullable<Submission['refine']> {
  return (input, card) => {
    const { id, mode: modelMode } = card as TextCard;
    if (mode === 'denoise' && modelMode === 'autoregressive')
      throw invalidField(
        'stream_mode',
        mode,
        `"block_append": ${id} is autoregressive, it writes token by token and changes nothing that it has written`,
      );
    return input;
  };
}

async function generatedAnswer(context: ApiContext, id: string, watch: ClientWatch): Promise<GenerateAnswer> {
  const text = new GeneratedText();
  for await (const item of followTexts(context, { id, watch })) if (item !== 'heartbeat') text.take(item);
  return text.answer;
}

async function* generatedFrames(
  context: ApiContext,
  { id, watch, mode }: { id: string; watch: ClientWatch; mode: StreamMode },
): AsyncGenerator<string, void> {
  const text = new GeneratedText();
  for await (const item of followTexts(context, { id, watch })) {
    if (item === 'heartbeat') {
      yield heartbeatFrame;
      continue;
    }
    if (item.type === 'taken-back') throw textChanged(id);
    const { append, snapshot } = text.take(item);
    if (mode === 'block_append' && append !== undefined) yield sseFrame({ event: 'append', data: append });
    if (mode === 'denoise' && snapshot !== undefined) yield sseFrame({ event: 'buffer_snapshot', data: snapshot });
  }
  yield sseFrame({ event: 'final', data: text.answer });
}
