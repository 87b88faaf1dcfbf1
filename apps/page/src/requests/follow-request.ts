import { type Client, isEnded, type RequestEvent, type RequestView } from '@darkroom/client';
import { pause } from '../server/poller.ts';
import type { StreamSlots } from './stream-slots.ts';

const pollEveryMs = 2000;

export interface FollowRequestOptions {
  client: Client;
  id: string;
  slots: StreamSlots;
  signal: AbortSignal;
  /** Id of the last event seen; undefined begins with the first. */
  after: () => string | undefined;
  /** Whether it is known to wait. */
  isQueued: () => boolean;
  /** `isStreaming`: events come too, and are ahead of polls. */
  onPoll: (view: RequestView, isStreaming: boolean) => void;
  onEvent: (event: RequestEvent) => void;
  /** A poll has found it at its end, and no events bring what came of it. */
  onEndedPoll?: () => Promise<void>;
}

/**
 * Follows a request to its end: by its events as soon as there is a slot for another stream, by polls until then, and by
 * both while it waits: the queue's movements are no events. Throws ClientError for what does not pass, or the signal's reason.
 */
export async function followRequest(options: FollowRequestOptions): Promise<void> {
  const { client, id, slots, signal, after, isQueued, onPoll, onEvent, onEndedPoll } = options;
  let isStreaming = false;
  /** Whether there is nothing more to come. */
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
  // What is slower ends when the signal is aborted, as it is after this.
  if (!(await poll())) await Promise.race([slots.run(signal, stream), pollToEnd()]);
}
