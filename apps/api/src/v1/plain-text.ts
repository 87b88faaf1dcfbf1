/** `Accept: text/plain`: streams the bare text of a request as it is generated. */
import { isTerminalState, type RequestSnapshot } from '@darkroom/core';
import { text as textKind, type TextInput } from '@darkroom/kinds';
import { accepts } from 'hono/accepts';
import type { ApiContext } from '../context/context.ts';
import { BrokenStream, streamEvents } from '../follow/stream-events.ts';
import { EventTail, isEnd } from '../follow/tail-events.ts';
import type { ApiCall } from '../http/api-env.ts';
import { invalidField } from '../http/api-error.ts';
import { createTextFollower } from '../openai/text/follow-texts.ts';
import { endedWithoutResult } from '../answer/stored-request-error.ts';

/** Returns true if the client prefers plain text. Clients that accept anything get JSON. */
export function wantsPlainText(c: ApiCall): boolean {
  const supports = ['application/json', 'text/plain'];
  return accepts(c, { header: 'Accept', supports, default: 'application/json' }) === 'text/plain';
}

/** Returns true for a request of the text kind. */
export function isText({ kind }: { kind: string }): boolean {
  return kind === textKind.id;
}

/** Throws 400 for several texts, which a plain-text stream could not separate. */
export function onlySingleText(input: unknown): unknown {
  const { n } = input as TextInput;
  if (n > 1) throw invalidField('n', n, '1 with Accept: text/plain; use events or JSON for several texts');
  return input;
}

/**
 * Streams the only text of a request from its start, in chunks as it is generated (final blocks for block diffusion).
 * Disconnecting does not cancel the request. Aborts the connection if the text does not complete; throws 422 if that is
 * known before, and like `streamEvents`.
 */
export function streamPlainText(
  c: ApiCall,
  context: ApiContext,
  find: () => Promise<Pick<RequestSnapshot, 'id' | 'state' | 'error' | 'input'>>,
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
  const itemsOf = createTextFollower(id);
  const tail = new EventTail(context, id, { after: 0, ...options });
  try {
    for (let next = await tail.next(); next !== undefined; next = await tail.next()) {
      // Plain text has no comments to send as heartbeats.
      if (next === 'heartbeat') continue;
      if (next === 'draining') throw new BrokenStream('This server is stopping; the request continues.');
      if (next === 'done') throw new BrokenStream('The log ended before the text.');
      for (const event of next) {
        for (const item of itemsOf(event)) {
          if (item.type === 'taken-back')
            throw new BrokenStream('The request was rerun and produced a different text.');
          if (item.type === 'added' && item.text !== '') yield item.text;
        }
        if (event.type === 'succeeded') return;
        if (isEnd(event)) throw new BrokenStream(`The request has ${event.type}.`);
      }
    }
  } finally {
    tail.close();
  }
}
