import { isoTime, type RequestEvent, type RequestStatus, textAfter } from '@darkroom/core';
import { readEvents, readOutput } from '@darkroom/store';
import type { ApiContext } from '../context.ts';
import { endOf } from '../follow/estimate-end.ts';
import { requestGone } from '../http/api-error.ts';
import { requestUrls } from '../http/urls.ts';
import type { AskStore } from '../server/store-guard.ts';

/** A request as clients see it. `isInline`: with the bytes of its outputs, in a second round trip. */
export async function requestAnswer(
  context: ApiContext,
  request: RequestStatus,
  { isInline = false }: { isInline?: boolean } = {},
) {
  const { askStore, kinds } = context;
  const { id, outputs } = request;
  const kind = kinds.of(request.kind);
  const [eta, texts, inlined] = await Promise.all([
    endOf(context, request),
    kind?.outputs === 'text' ? readTexts(askStore, request) : [],
    isInline && kind?.outputs === 'bytes' ? readOutputs(askStore, request) : undefined,
  ]);
  return {
    request_id: id,
    kind: request.kind,
    status: request.state,
    is_canceling: request.isCanceling,
    model: request.model,
    created_at: isoTime(request.createdAtMs),
    started_at: isoTime(request.startedAtMs),
    ended_at: isoTime(request.endedAtMs),
    expires_at: isoTime(request.expiresAtMs),
    queue_position: request.queuePosition ?? null,
    ...(eta === undefined ? {} : { eta_seconds: eta }),
    is_possible: request.isPossible,
    attempts: request.attempts,
    ...kind?.requestView(request, texts),
    ...kind?.resultView(id, outputs, inlined),
    ...(request.error === undefined ? {} : { error: request.error }),
    ...(request.retryOf === undefined ? {} : { retry_of: request.retryOf }),
    ...(request.retriedAs === undefined ? {} : { retried_as: request.retriedAs }),
    urls: requestUrls(id),
  };
}

/** All finished ones at once. */
async function readOutputs(askStore: AskStore, { id, outputs }: RequestStatus): Promise<Map<number, Buffer>> {
  const entries = outputs.map(async ({ index }): Promise<[number, Buffer]> => {
    const output = await askStore((store) => readOutput(store, id, index));
    // Its time ended between the two round trips.
    if (output === undefined) throw requestGone(id);
    return [index, output.data];
  });
  return new Map(await Promise.all(entries));
}

/** Entries of the log at a time; a long one has been compacted to fewer. */
const limit = 256;

/** What stands by now of each output of a request of text, `''` where nothing does. One round trip, as a rule. */
async function readTexts(
  askStore: AskStore,
  { id, outputCount }: Pick<RequestStatus, 'id' | 'outputCount'>,
): Promise<string[]> {
  const texts = Array.from({ length: outputCount }, () => '');
  let events: RequestEvent[] = [];
  do {
    const after = events.at(-1)?.sequence ?? 0;
    events = await askStore((store) => readEvents(store, id, { after, limit }));
    for (const event of events)
      if (event.type === 'delta' || event.type === 'snapshot' || event.type === 'reset')
        texts[event.index] = textAfter(texts[event.index] ?? '', event);
  } while (events.length === limit);
  return texts;
}
