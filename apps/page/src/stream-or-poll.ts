import { type Client, isEnded, type Picture, type RequestEvent, type RequestView } from '@darkroom/client';
import type { StreamSlots } from './stream-slots.ts';

const pollEveryMs = 2000;

export interface StreamOrPollOptions {
  client: Client;
  id: string;
  /** Id of the last event seen, when it was followed before. */
  after: string | undefined;
  slots: StreamSlots;
  signal: AbortSignal;
  onPoll: (view: RequestView, isStreaming: boolean) => void;
  onEvent: (event: RequestEvent) => void;
  onPictures: (pictures: readonly Picture[]) => void;
  /** Whether it still waits, as far as is known: the queue's movements are no events. */
  isQueued: () => boolean;
}

/**
 * Follows a request to its end: by its events as soon as there is a slot for another stream, by polls until then, and
 * by both while it waits in the queue. Throws ClientError for what does not pass, or the signal's reason.
 */
export async function streamOrPoll(options: StreamOrPollOptions): Promise<void> {
  const { client, id, signal, onPoll } = options;
  const first = await client.get(id, { signal });
  onPoll(first, false);
  if (isEnded(first)) return bringPictures(options, signal);
  const stop = new AbortController();
  const until = AbortSignal.any([signal, stop.signal]);
  const now = { isStreaming: false };
  try {
    await Promise.race([streamEvents(options, until, now), pollToEnd(options, until, now)]);
  } finally {
    stop.abort();
  }
}

async function streamEvents(
  { client, id, after, slots, onEvent }: StreamOrPollOptions,
  signal: AbortSignal,
  now: { isStreaming: boolean },
): Promise<void> {
  await slots.run(signal, async () => {
    now.isStreaming = true;
    for await (const event of client.stream(id, { after, signal })) onEvent(event);
  });
}

async function pollToEnd(
  options: StreamOrPollOptions,
  signal: AbortSignal,
  now: { isStreaming: boolean },
): Promise<void> {
  const { client, id, onPoll, isQueued } = options;
  for (;;) {
    await pause(pollEveryMs, signal);
    if (now.isStreaming && !isQueued()) continue;
    const view = await client.get(id, { signal });
    onPoll(view, now.isStreaming);
    if (!now.isStreaming && isEnded(view)) return bringPictures(options, signal);
  }
}

async function bringPictures({ client, id, onPictures }: StreamOrPollOptions, signal: AbortSignal): Promise<void> {
  onPictures(await client.images(id, { signal }));
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => {
    const over = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', over);
      resolve();
    };
    const timer = setTimeout(over, ms);
    signal.addEventListener('abort', over);
  });
  signal.throwIfAborted();
}
