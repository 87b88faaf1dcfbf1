import { createParser, type EventSourceMessage } from 'eventsource-parser';
import { readWithin } from './read-within.ts';
import { connectionFailed } from './send.ts';

export interface ReadMessagesOptions {
  /** Milliseconds without a byte after which the connection counts as lost. */
  silenceMs: number;
  signal: AbortSignal | undefined;
  onRetry: (retryMs: number) => void;
  onComment: () => void;
}

/**
 * The messages of a stream of server-sent events, one connection's worth. Ends when the connection does, in order or
 * not: a message without its empty line is not one. Throws {@link ClientError} when it breaks, or the signal's reason.
 */
export async function* readMessages(
  body: ReadableStream<Uint8Array>,
  { silenceMs, signal, onRetry, onComment }: ReadMessagesOptions,
): AsyncGenerator<EventSourceMessage, void> {
  // Not `for await`: Safari's streams are no iterables.
  const reader = body.getReader();
  const decoder = new TextDecoder();
  const messages: EventSourceMessage[] = [];
  const parser = createParser({ onEvent: (message) => messages.push(message), onRetry, onComment });
  try {
    for (;;) {
      // Heartbeats come every 15 s, so silence is a connection whose other end is gone without a word.
      const bytes = await readWithin(reader, silenceMs).catch((error: unknown) => {
        signal?.throwIfAborted();
        throw connectionFailed('events', error);
      });
      if (bytes === undefined) return;
      parser.feed(decoder.decode(bytes, { stream: true }));
      yield* messages.splice(0);
    }
  } finally {
    // Closes the connection of a reader that leaves; nothing to wait for.
    reader.cancel().catch(() => {});
  }
}
