/** `Accept: text/plain`: the text of a request as it is written, without anything around it. */
import { isTerminalState, type RequestStatus } from '@darkroom/core';
import { text as textKind, type TextInput } from '@darkroom/kinds';
import { accepts } from 'hono/accepts';
import type { ApiContext } from '../context.ts';
import { BrokenStream, streamEvents } from '../follow/stream-events.ts';
import { isEnd, tailEvents } from '../follow/tail-events.ts';
import type { ApiCall } from '../http/api-env.ts';
import { invalidField } from '../http/api-error.ts';
import { createTextReader } from '../openai/text/follow-texts.ts';
import { endedWithoutResult } from '../follow/stored-request-error.ts';

/** Whether plain text is what the client would rather have. One that takes anything gets JSON. */
export function wantsPlainText(c: ApiCall): boolean {
  const supports = ['application/json', 'text/plain'];
  return accepts(c, { header: 'Accept', supports, default: 'application/json' }) === 'text/plain';
}

/** Whether a request has texts that may be read so. */
export function isText({ kind }: { kind: string }): boolean {
  return kind === textKind.id;
}

/** Throws 400 for several texts, of which nobody could tell which is which. */
export function onlySingleText(input: unknown): unknown {
  const { n } = input as TextInput;
  if (n > 1) throw invalidField('n', n, '1 with Accept: text/plain, which has one text; take the events or JSON');
  return input;
}

/**
 * Answers with the only text of a request, from its beginning, in chunks as it is written: of block diffusion, blocks as they
 * are settled. Whoever leaves cancels nothing. A text that does not come to its end breaks the connection off; throws 422 where
 * that is known before, and as `streamEvents`.
 */
export function streamPlainText(
  c: ApiCall,
  context: ApiContext,
  find: () => Promise<Pick<RequestStatus, 'id' | 'state' | 'error' | 'input'>>,
): Promise<Response> {
  return streamEvents(c, context, async () => {
    const { id, state, error, input } = await find();
    c.header('X-Request-Id', id);
    onlySingleText(input);
    const isEnded = isTerminalState(state);
    if (isEnded && state !== 'succeeded') throw endedWithoutResult(id, state, error);
    return {
      contentType: 'text/plain',
      breaksOff: true,
      frames: (signal) => addedTexts(context, id, { isEnded, signal }),
    };
  });
}

async function* addedTexts(
  context: ApiContext,
  id: string,
  options: { isEnded: boolean; signal: AbortSignal },
): AsyncGenerator<string, void> {
  const itemsOf = createTextReader(id);
  for await (const event of tailEvents(context, id, { after: 0, ...options })) {
    // There are no comments in plain text.
    if (event === 'heartbeat') continue;
    if (event === 'draining') throw new BrokenStream('This server stops; the request goes on.');
    if (event === 'done') throw new BrokenStream('The log ended before the text.');
    for (const item of itemsOf(event)) {
      if (item.type === 'taken-back') throw new BrokenStream('The request was run again and wrote another text.');
      if (item.type === 'added' && item.text !== '') yield item.text;
    }
    if (event.type === 'succeeded') return;
    if (isEnd(event)) throw new BrokenStream(`The request has ${event.type}.`);
  }
}
