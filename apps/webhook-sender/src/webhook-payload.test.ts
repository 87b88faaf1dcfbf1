import type { OutboxEntry } from '@darkroom/store';
import { expect, it } from 'vitest';
import { webhookPayload } from './webhook-payload.ts';

const entry: OutboxEntry = {
  entryId: '1-0',
  requestId: 'tiny-01kaj3v0q8f3zt6m0c9d7p2xwe',
  model: 'tiny',
  owner: '',
  url: 'https://example.com',
  attempt: 1,
  event: { sequence: 2, type: 'started', timestampMs: 0, attempt: 1 },
  retryOf: undefined,
};

it('names the failed request that an operator had retried, and leaves that out otherwise', () => {
  const data = { request_id: entry.requestId, model: 'tiny', status: 'running', attempt: 1 };
  const message = { type: 'request.started', timestamp: '1970-01-01T00:00:00.000Z' };
  expect(JSON.parse(webhookPayload(entry))).toEqual({ ...message, data });
  const retryOf = 'tiny-01kaj3v0q8f3zt6m0c9d7p2xwd';
  expect(JSON.parse(webhookPayload({ ...entry, retryOf }))).toEqual({
    ...message,
    data: { ...data, retry_of: retryOf },
  });
});
