import type { OutputInfo, StoredEvent } from '@darkroom/core';
import { readOutput } from '@darkroom/store';
import type { ApiContext } from '../../context/context.ts';
import { readChunk, withPreview } from '../../follow/event-bytes.ts';
import { followStored } from '../../answer/follow-stored.ts';
import { endedWithoutResult } from '../../answer/stored-request-error.ts';
import type { ClientWatch } from '../../answer/watch-client.ts';

/** A preview of an unfinished image, smaller than the final one. */
export interface PartialImage {
  type: 'partial';
  imageIndex: number;
  /** Counts from 0 within each image. */
  partialIndex: number;
  step: number;
  totalSteps: number;
  data: Uint8Array;
  contentType: string;
  timestampMs: number;
}

export interface CompletedImage {
  type: 'completed';
  output: OutputInfo;
  /** Empty if `withData` is false. */
  data: Uint8Array;
  timestampMs: number;
}

type OutputEvent = Extract<StoredEvent, { type: 'output' }>;

interface FollowImagesOptions {
  id: string;
  watch: ClientWatch;
  /** Maximum number of previews per image. */
  partialImages: number;
  withData: boolean;
}

/** Yields previews and images as they are made, each image once even if written twice. Throws like `followStored`. */
export function followImages(
  context: ApiContext,
  { id, watch, partialImages, withData }: FollowImagesOptions,
): AsyncGenerator<PartialImage | CompletedImage | 'heartbeat', void> {
  const completed = new Set<number>();
  const partialOf = createPartials(context, id, partialImages);
  async function* complete(
    output: OutputInfo,
    timestampMs: number,
    event?: OutputEvent,
  ): AsyncGenerator<CompletedImage, void> {
    if (completed.has(output.index)) return;
    const read = async (): Promise<Uint8Array | undefined> =>
      event !== undefined && output.chunks === 1
        ? readChunk(context.withStore, id, event)
        : (await context.withStore((store) => readOutput(store, id, output.index)))?.data;
    const data = withData ? await read() : new Uint8Array();
    if (data === undefined) throw endedWithoutResult(id, 'succeeded', undefined);
    completed.add(output.index);
    yield { type: 'completed', output, data, timestampMs };
  }
  async function* itemsOf(event: StoredEvent): AsyncGenerator<PartialImage | CompletedImage, void> {
    if (event.type === 'preview') yield* partialOf(event);
    else if (event.type === 'output' && event.chunkIndex === event.output.chunks - 1)
      yield* complete(event.output, event.timestampMs, event);
    // Yield every output: the log is capped, so earlier `output` events may be missing.
    else if (event.type === 'succeeded') for (const output of event.outputs) yield* complete(output, event.timestampMs);
  }
  return followStored(context, id, watch, itemsOf);
}

/** Yields at most `max` previews per image. Skips steps that a worker repeats when it resumes a requeued request. */
function createPartials({ withStore }: ApiContext, id: string, max: number) {
  const shown = new Map<number, { step: number; count: number }>();
  return async function* (event: Extract<StoredEvent, { type: 'preview' }>): AsyncGenerator<PartialImage, void> {
    const { index: imageIndex, done: step, total: totalSteps = 0, contentType, timestampMs } = event;
    const last = shown.get(imageIndex) ?? { step: 0, count: 0 };
    if (step <= last.step || last.count >= max) return;
    const { data } = await withPreview(withStore, id, event);
    if (data === undefined) return;
    shown.set(imageIndex, { step, count: last.count + 1 });
    yield { type: 'partial', imageIndex, partialIndex: last.count, step, totalSteps, data, contentType, timestampMs };
  };
}
