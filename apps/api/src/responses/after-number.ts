import { pairUp } from '@darkroom/core';
import type { TokenLogprob } from '@darkroom/kinds';
import { textOffsetsOf } from '../openai/text/text-shape.ts';
import type { ResponseEvent } from './response-events.ts';

/** Returns the part of an event after a sequence number; a delta may be cut. Undefined if nothing remains. */
export function afterNumber(event: ResponseEvent, number: number): ResponseEvent | undefined {
  const { sequence_number: last, delta, logprobs } = event;
  if (last <= number) return undefined;
  if (typeof delta !== 'string') return event;
  const known = number - (last - delta.length);
  if (known <= 0) return event;
  const tokens = (logprobs ?? []) as TokenLogprob[];
  const offsets = textOffsetsOf(tokens, delta);
  const left = pairUp(tokens, offsets).flatMap(([token, offset]) => (offset >= known ? [token] : []));
  const rest = logprobs !== undefined && { logprobs: left };
  return { ...event, delta: delta.slice(known), ...rest };
}
