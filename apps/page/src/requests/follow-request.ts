import { type Client, isEnded, type RequestEvent, type RequestView } from '@darkroom/client';
import { pause } from '../server/poller.ts';
import type { StreamSlots } from './stream-slots.ts';

const pollEveryMs = 2000;

export interface FollowRequestOptions {
  client: Client;
  id: string;
  slots: StreamSlots;
  signal: AbortSignal;
  /** Id of the last event seen; undefined starts with the first. */
  after: () => string | undefined;
  /** Returns true if the request is known to be queued. */
  isQueued: () => boolean;
  /** Called with each poll. `isStreaming`: events are received too, and are newer than polls. */
  onPoll: (view: RequestView, isStreaming: boolean) => void;
  onEvent: (event: RequestEvent) => void;
  /** Called when a poll finds that the request has ended and no events are received, to fetch the outputs. */
  onEndedPoll?: () => Promise<void>;
}

/**
 * Follows a request to its end: by polls until a stream slot is free, then by events. While the request is queued it
 * also polls, because queue positions are not events. Throws ClientError for a permanent error, or the signal's reason.
 */
export async function followRequest(options: FollowRequestOptions): Promise<void> {
  const { client, id, slots, signal, after, isQueued, onPoll, onEvent, onEndedPoll } = options;
  let isStreaming = false;
  /** Polls once; returns true if the request has ended. */
  const poll = async (): Promise<boolean> => {
    const view = await client.get(id, { signal });
    onPoll(view, isStreaming);
    if (isStreaming || !isEnded(view)) return false;
    await onEndedPoll?.();
    return true;
  };
  const pollToEnd = async (): Promise<void> => {
    while (await pause(pollEveryMs, signal)) if (!(isStreaming && !isQueued()) && (await poll())) return;
  };
  const stream = async (): Promise<void> => {
    isStreaming = true;
    for await (const event of client.stream(id, { after: after(), signal })) onEvent(event);
  };
  // Aborting the signal, which callers do afterwards, ends the slower one.
  if (!(await poll())) await Promise.race([slots.run(signal, stream), pollToEnd()]);
}
