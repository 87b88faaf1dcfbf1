/** An event as emit-event.lua writes it: in the log with its preview beside it, in a published message as one buffer. */
import type { RequestEvent } from '@darkroom/core';

/** From a published message: `<sequence> <body>\n<preview>`. */
export function decodeMessage(message: Buffer): RequestEvent {
  const space = message.indexOf(0x20);
  const newline = message.indexOf(0x0a, space);
  return decodeEvent(
    Number(message.toString('latin1', 0, space)),
    message.toString('utf8', space + 1, newline),
    message.subarray(newline + 1),
  );
}

/** `preview`: its bytes; none, or no more, when empty. */
export function decodeEvent(sequence: number, body: string, preview: Uint8Array = new Uint8Array()): RequestEvent {
  const event = { ...(JSON.parse(body) as Omit<RequestEvent, 'sequence'>), sequence } as RequestEvent;
  return event.type === 'preview' && preview.length > 0 ? { ...event, data: preview } : event;
}
