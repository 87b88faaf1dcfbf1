import type { OutputInfo, OutputText, RequestEvent } from '@darkroom/core';
import { readOutput } from '@darkroom/store';
import type { ApiContext } from '../context.ts';
import { followStored } from './follow-stored.ts';
import { endedWithoutResult } from './stored-request-error.ts';
import type { ClientWatch } from './watch-client.ts';

/** Something was added to a text, and stays. */
export interface AddedText {
  type: 'added';
  index: number;
  text: string;
  /** Of exactly this piece (`TextPieceFacts`); absent where it was read from a log that was made shorter. */
  facts?: OutputText['facts'] | undefined;
  timestampMs: number;
}

/** What stands in the block that is worked on, after all that was added. */
export interface ShownBlock extends Omit<AddedText, 'type'> {
  type: 'block';
}

/** A text has come to its end. */
export interface FinishedText {
  type: 'finished';
  output: OutputInfo;
  /** All of it; empty where `withText` is false. */
  text: string;
  timestampMs: number;
}

export type TextItem = AddedText | ShownBlock | FinishedText;

interface FollowTextsOptions {
  id: string;
  watch: ClientWatch;
  /** Whether finished texts are wanted as a whole. */
  withText?: boolean;
}

/**
 * The texts of a request in the writing: each piece once, whatever number of workers wrote it, and nothing of a block before
 * the block stays. Throws as `followStored`.
 */
export function followTexts(
  context: ApiContext,
  { id, watch, withText = false }: FollowTextsOptions,
): AsyncGenerator<TextItem | 'heartbeat', void> {
  const itemsOf = createTextReader();
  return followStored(context, id, watch, async function* (event) {
    for (const item of itemsOf(event)) {
      if (item.type !== 'finished' || !withText) yield item;
      else yield { ...item, text: await wholeText(context, id, item.output.index) };
    }
  });
}

async function wholeText({ askStore }: ApiContext, id: string, index: number): Promise<string> {
  const stored = await askStore((store) => readOutput(store, id, index));
  if (stored === undefined) throw endedWithoutResult(id, 'succeeded', undefined);
  return stored.data.toString('utf8');
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
    yield { type: 'added', index, text: text.slice(known), ...(known === 0 && { facts }), timestampMs };
  };
  const finish = function* (output: OutputInfo, timestampMs: number): Generator<FinishedText, void> {
    if (finished.has(output.index)) return;
    yield { type: 'finished', output, text: '', timestampMs };
    // Who could not take it is given it again.
    finished.add(output.index);
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
    } else if (event.type === 'output' && event.chunkIndex === event.output.chunks - 1)
      yield* finish(event.output, event.timestampMs);
    // All of them: the log may have lost what stood in its beginning.
    else if (event.type === 'succeeded') for (const output of event.outputs) yield* finish(output, event.timestampMs);
  };
}
