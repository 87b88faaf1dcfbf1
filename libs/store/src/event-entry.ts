/** An event as emit-event.lua writes it: in the stream as fields, in a published message as one buffer. */
import type { RequestEvent } from '@darkroom/core';

/** From a published message: `<sequence> <body>\n<attachment>`. */
export function decodeMessage(message: Buffer): RequestEvent {
  const space = message.indexOf(0x20);
  const newline = message.indexOf(0x0a, space);
  return assemble(
    Number(message.toString('latin1', 0, space)),
    message.toString('utf8', space + 1, newline),
    message.subarray(newline + 1),
  );
}

/** From a stream entry: its id and its fields. */
export function decodeEntry([id, fields]: readonly [Buffer, readonly Buffer[]]): RequestEvent {
  const [, body, , attachment] = fields;
  if (body === undefined || attachment === undefined) throw new Error('an event entry has no body');
  return assemble(Number.parseInt(id.toString('latin1'), 10), body.toString('utf8'), attachment);
}

function assemble(sequence: number, body: string, attachment: Buffer): RequestEvent {
  const event = { ...(JSON.parse(body) as Omit<RequestEvent, 'sequence'>), sequence } as RequestEvent;
  if (event.type !== 'progress' || !('contentType' in event)) return event;
  return { ...event, type: 'preview', contentType: String(event.contentType), data: attachment };
}
