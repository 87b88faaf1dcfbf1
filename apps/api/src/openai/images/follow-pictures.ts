import type { OutputInfo, RequestEvent } from '@darkroom/core';
import { readOutput, readOutputChunk } from '@darkroom/store';
import type { ApiContext } from '../../context.ts';
import { withPreview } from '../../follow/with-preview.ts';
import { followStored } from '../../follow/follow-stored.ts';
import { endedWithoutResult } from '../../follow/stored-request-error.ts';
import type { ClientWatch } from '../../follow/watch-client.ts';

/** A picture in the making, smaller than the one it becomes. */
export interface PartialPicture {
  type: 'partial';
  imageIndex: number;
  /** Counts from 0 for every picture. */
  partialIndex: number;
  step: number;
  totalSteps: number;
  data: Uint8Array;
  contentType: string;
  timestampMs: number;
}

export interface CompletedPicture {
  type: 'completed';
  output: OutputInfo;
  /** Empty where `withData` is false. */
  data: Uint8Array;
  timestampMs: number;
}

type OutputEvent = Extract<RequestEvent, { type: 'output' }>;

interface FollowPicturesOptions {
  id: string;
  watch: ClientWatch;
  /** Of each picture, at most. */
  partialImages: number;
  withData: boolean;
}

/** The pictures of a request in the making, each once, whatever number of workers drew it. Throws as `followStored`. */
export function followPictures(
  context: ApiContext,
  { id, watch, partialImages, withData }: FollowPicturesOptions,
): AsyncGenerator<PartialPicture | CompletedPicture | 'heartbeat', void> {
  const completed = new Set<number>();
  const partialOf = createPartials(context, id, partialImages);
  async function* whole(
    output: OutputInfo,
    timestampMs: number,
    event?: OutputEvent,
  ): AsyncGenerator<CompletedPicture, void> {
    if (completed.has(output.index)) return;
    const isAllOfIt = event !== undefined && output.chunks === 1;
    const read = (): Promise<Uint8Array | undefined> =>
      context.askStore(async (store) =>
        isAllOfIt ? readOutputChunk(store, id, event) : (await readOutput(store, id, output.index))?.data,
      );
    const data = withData ? await read() : new Uint8Array();
    if (data === undefined) throw endedWithoutResult(id, 'succeeded', undefined);
    completed.add(output.index);
    yield { type: 'completed', output, data, timestampMs };
  }
  async function* itemsOf(event: RequestEvent): AsyncGenerator<PartialPicture | CompletedPicture, void> {
    if (event.type === 'preview') yield* partialOf(event);
    else if (event.type === 'output' && event.chunkIndex === event.output.chunks - 1)
      yield* whole(event.output, event.timestampMs, event);
    // All of them: the log is capped, and what stood in its beginning may be missing.
    else if (event.type === 'succeeded') for (const output of event.outputs) yield* whole(output, event.timestampMs);
  }
  return followStored(context, id, watch, itemsOf);
}

/** At most so many of each picture. A worker that goes on where a lost one stood repeats steps. */
function createPartials({ askStore }: ApiContext, id: string, max: number) {
  const shown = new Map<number, { step: number; count: number }>();
  return async function* (event: Extract<RequestEvent, { type: 'preview' }>): AsyncGenerator<PartialPicture, void> {
    const { index: imageIndex, done: step, total: totalSteps = 0, contentType, timestampMs } = event;
    const last = shown.get(imageIndex) ?? { step: 0, count: 0 };
    if (step <= last.step || last.count >= max) return;
    const { data } = await withPreview(askStore, id, event);
    if (data === undefined) return;
    shown.set(imageIndex, { step, count: last.count + 1 });
    yield { type: 'partial', imageIndex, partialIndex: last.count, step, totalSteps, data, contentType, timestampMs };
  };
}
