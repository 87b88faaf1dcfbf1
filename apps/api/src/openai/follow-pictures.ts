import type { ApiConfig } from '@darkroom/config';
import { DarkroomError, type OutputInfo, type RequestEvent } from '@darkroom/core';
import { readOutput } from '@darkroom/store';
import type { ApiError } from '../http/api-error.ts';
import { drainMs } from '../server/api-server.ts';
import type { AskStore } from '../server/store-guard.ts';
import { checkMs, type FollowDeps, tailEvents, type TailItem } from '../follow/tail-events.ts';
import { endedWithoutPictures, endUnknown, serverStopping } from './stored-request-error.ts';
import { createWakeSignal } from '../follow/wake-signal.ts';

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

/** After `done` and `failed` nothing follows. */
export type PictureItem =
  | PartialPicture
  | CompletedPicture
  | { type: 'heartbeat' }
  | { type: 'done' }
  | { type: 'failed'; error: ApiError };

export type FollowPicturesDeps = FollowDeps & { config: Pick<ApiConfig, 'requestTimeoutS'> };

export interface FollowPicturesOptions {
  /** Partial pictures of each picture, at most. */
  partialImages: number;
  /** Whether the finished pictures' bytes are wanted. */
  withData: boolean;
  /** The client has an Idempotency-Key by which it may come back to the same request. */
  hasKey: boolean;
  /** The client has gone. */
  signal: AbortSignal;
}

interface Progress {
  /** Sequence number of the last event that was dealt with. */
  after: number;
  completed: Set<number>;
  /** By picture: the step of the last partial one, and how many there were. */
  partials: Map<number, { step: number; count: number }>;
}

/** Longer than any request's own time, for the janitor to notice that it is over. */
const marginMs = 15_000;
/** How long a wait goes on when this process is told to stop: the rest is for saying that no picture comes. */
export const drainGraceMs = drainMs - 1000;

/**
 * The pictures of a request in the making: the events of `tailEvents`, each picture once, whatever number of
 * workers drew it. Goes on over a Redis that is away, and over this process being told to stop for as long as it may.
 */
export async function* followPictures(
  deps: FollowPicturesDeps,
  id: string,
  options: FollowPicturesOptions,
): AsyncGenerator<PictureItem, void> {
  const patience = startPatience(deps, id, options.hasKey);
  const patient = { ...deps, draining: patience.over };
  const progress: Progress = { after: 0, completed: new Set(), partials: new Map() };
  try {
    while (!options.signal.aborted && !patience.over.aborted) {
      try {
        const { after } = progress;
        for await (const item of tailEvents(patient, id, { after, isEnded: false, signal: options.signal })) {
          if (item === 'draining') break;
          for await (const next of pictureItems(deps.askStore, id, { item, progress, options })) {
            yield next;
            if (next.type === 'failed' || next.type === 'done') return;
          }
          if (typeof item === 'object') progress.after = item.sequence;
        }
      } catch (error) {
        if (!DarkroomError.isInstance(error) || error.code !== 'unavailable') throw error;
        yield { type: 'heartbeat' };
        await nextTry(patient, options.signal);
      }
    }
    yield { type: 'failed', error: patience.error() };
  } finally {
    patience.stop();
  }
}

/** Ends the wait some time after this process is told to stop, and when the request must have ended long ago. */
function startPatience({ every, draining, config }: FollowPicturesDeps, id: string, hasKey: boolean) {
  const over = new AbortController();
  let error = (): ApiError => endUnknown(id);
  const stops = [every(config.requestTimeoutS * 1000 + marginMs, () => over.abort())];
  const onDraining = (): void => {
    error = () => serverStopping(id, hasKey);
    stops.push(every(drainGraceMs, () => over.abort()));
  };
  if (draining.aborted) onDraining();
  else {
    draining.addEventListener('abort', onDraining);
    stops.push(() => draining.removeEventListener('abort', onDraining));
  }
  return { over: over.signal, error: () => error(), stop: () => stops.forEach((stop) => stop()) };
}

/** Redis is away: waits for the next moment at which it may be back. */
async function nextTry({ every, hub, draining }: FollowDeps, signal: AbortSignal): Promise<void> {
  const { wake, woken } = createWakeSignal();
  const stops = [every(checkMs, wake), hub.onReconnect(wake)];
  for (const ending of [draining, signal]) {
    if (ending.aborted) wake();
    ending.addEventListener('abort', wake);
    stops.push(() => ending.removeEventListener('abort', wake));
  }
  await woken();
  stops.forEach((stop) => stop());
}

interface Step {
  item: Exclude<TailItem, 'draining'>;
  progress: Progress;
  options: FollowPicturesOptions;
}

async function* pictureItems(
  askStore: AskStore,
  id: string,
  { item, progress, options }: Step,
): AsyncGenerator<PictureItem, void> {
  if (item === 'heartbeat') return yield { type: 'heartbeat' };
  // The log is over without an end: so is the time of the results.
  if (item === 'done') return yield { type: 'failed', error: endedWithoutPictures(id, 'succeeded', undefined) };
  if (item.type === 'preview') {
    const partial = partialOf(item, progress, options);
    if (partial !== undefined) yield partial;
  } else if (item.type === 'output' && item.chunkIndex === item.output.chunks - 1)
    yield* completed(askStore, id, { outputs: [item.output], timestampMs: item.timestampMs, progress, options });
  else if (item.type === 'succeeded') {
    // All of them: the log is capped, and what stood in its beginning may be missing.
    yield* completed(askStore, id, { outputs: item.outputs, timestampMs: item.timestampMs, progress, options });
    yield { type: 'done' };
  } else if (item.type === 'failed' || item.type === 'canceled' || item.type === 'expired')
    yield { type: 'failed', error: endedWithoutPictures(id, item.type, item.error) };
}

/** A worker that goes on where a lost one stood repeats steps. */
function partialOf(
  event: Extract<RequestEvent, { type: 'preview' }>,
  { partials }: Progress,
  { partialImages }: FollowPicturesOptions,
): PartialPicture | undefined {
  const { index, done: step, total: totalSteps = 0, data, contentType, timestampMs } = event;
  const last = partials.get(index) ?? { step: 0, count: 0 };
  if (data === undefined || step <= last.step || last.count >= partialImages) return undefined;
  partials.set(index, { step, count: last.count + 1 });
  const common = { imageIndex: index, partialIndex: last.count, step, totalSteps, timestampMs };
  return { type: 'partial', ...common, data, contentType };
}

interface Outputs extends Omit<Step, 'item'> {
  outputs: readonly OutputInfo[];
  timestampMs: number;
}

/** Those that were not shown yet, whole. */
async function* completed(
  askStore: AskStore,
  id: string,
  { outputs, timestampMs, progress, options }: Outputs,
): AsyncGenerator<PictureItem, void> {
  for (const output of outputs) {
    if (progress.completed.has(output.index)) continue;
    const stored = options.withData ? await askStore((store) => readOutput(store, id, output.index)) : undefined;
    if (options.withData && stored === undefined)
      return yield { type: 'failed', error: endedWithoutPictures(id, 'succeeded', undefined) };
    progress.completed.add(output.index);
    yield { type: 'completed', output, data: stored?.data ?? new Uint8Array(), timestampMs };
  }
}
