/** Webhook messages in the formats of compatible APIs, for requests submitted through their routes. */
import { isTerminalState, type RequestSnapshot, urlBelow } from '@darkroom/core';
import { falFailure, falResult, imageUrl, type PredictionSource, replicatePrediction } from '@darkroom/kinds';
import type { OutboxEntry } from '@darkroom/store';

type View = NonNullable<OutboxEntry['view']>;

/**
 * Returns the body of a message about an event, as the clients of the view expect it.
 *
 * @param signOf signs an image path, so that it needs no API key.
 */
export function viewPayload(entry: OutboxEntry, view: View, signOf: (path: string) => string): object {
  const source = sourceOf(entry, view);
  const { name, root } = view;
  const urls = source.outputs.map(({ index }) => urlBelow(root, signOf(imageUrl(entry.requestId, index))));
  if (name === 'fal') return falMessage(source, urls);
  const hasStream = entry.owner === '';
  return replicatePrediction(source, { root, output: urls.length > 0 ? urls : null, hasStream });
}

/** The fields that a webhook event determines; those that do not apply to its state are undefined. */
type Source = PredictionSource & Pick<RequestSnapshot, 'outputs' | 'startedAtMs' | 'endedAtMs' | 'error'>;

/** Returns the request's state at the event. */
function sourceOf({ requestId: id, model, event }: OutboxEntry, { input, shown }: View): Source {
  const { type, timestampMs } = event;
  const { createdAtMs = timestampMs, startedAtMs, done = 0, total = 0, outputs } = shown;
  const common = { id, model, input, createdAtMs, startedAtMs, done, total };
  if (!isTerminalState(type)) return { ...common, state: 'running', outputs, endedAtMs: undefined, error: undefined };
  return {
    ...common,
    state: type,
    outputs: event.type === 'succeeded' ? event.outputs : [],
    error: event.type === 'failed' ? event.error : undefined,
    endedAtMs: timestampMs,
  };
}

/** Source: https://docs.fal.ai/model-endpoints/webhooks */
function falMessage(source: Source, urls: readonly string[]): object {
  const ids = { request_id: source.id, gateway_request_id: source.id };
  if (source.state === 'succeeded') return { ...ids, status: 'OK', payload: falResult(source, urls) };
  const { error, error_type } = falFailure(source);
  return { ...ids, status: 'ERROR', error, payload: { detail: error, error_type } };
}
