import type { OutputInfo, OutputText, RequestEvent } from '@darkroom/core';
import type { ApiContext } from '../context.ts';
import { followStored } from './follow-stored.ts';
import type { ClientWatch } from './watch-client.ts';

/** Something was added to a text, and stays. */
export interface AddedText {
  type: 'added';
  index: number;
  /** Where it begins in the text, UTF-16 units: where the last piece ended, unless the log has lost what was between. */
  offset: number;
  text: string;
  /** Of exactly this piece (`TextPieceFacts`); absent where it was read from a log that was made shorter. */
  facts?: OutputText['facts'] | undefined;
  timestampMs: number;
}

/** What stands in the block that is worked on, after all that was added. */
export interface ShownBlock extends Omit<AddedText, 'type' | 'offset'> {
  type: 'block';
}

/** A text has come to its end. */
export interface FinishedText {
  type: 'finished';
  output: OutputInfo;
  timestampMs: number;
}

export type TextItem = AddedText | ShownBlock | FinishedText;

/**
 * The texts of a request in the writing: each piece once, whatever number of workers wrote it, and nothing of a block before
 * the block stays. Throws as `followStored`.
 */
export function followTexts(
  context: ApiContext,
  { id, watch }: { id: string; watch: ClientWatch },
): AsyncGenerator<TextItem | 'heartbeat', void> {
  const itemsOf = createTextReader();
  return followStored(context, id, watch, async function* (event) {
    yield* itemsOf(event);
  });
}

/** Keeps what was said of each output of a request. */
export function createTextReader(): (event: RequestEvent) => Generator<TextItem, void> {
  const said = new Map<number, number>();
  const finished = new Set<number>();
  const added = function* (piece: OutputText & { timestampMs: number }): Generator<AddedText, void> {
    const { index, offset, text, facts, timestampMs } = piece;
    const known = Math.max(0, (said.get(index) ?? 0) - offset);
    if (known > 0 && known >= text.length) return;
    said.set(index, offset + text.length);
    const rest = { offset: offset + known, text: text.slice(known) };
    yield { type: 'added', index, ...rest, ...(known === 0 && { facts }), timestampMs };
  };
  return function* (event) {
    if (event.type === 'delta') yield* added(event);
    else if (event.type === 'snapshot') {
      // Without facts: a log that was made shorter, which says no more than what stays.
      if (event.facts === undefined || event.facts['settled'] === 1) yield* added(event);
      else {
        const { index, text, facts, timestampMs } = event;
        yield { type: 'block', index, text, facts, timestampMs };
      }
    } else if (event.type === 'output' && event.chunkIndex === event.output.chunks - 1) {
      if (finished.has(event.output.index)) return;
      finished.add(event.output.index);
      yield { type: 'finished', output: event.output, timestampMs: event.timestampMs };
    }
  };
}
