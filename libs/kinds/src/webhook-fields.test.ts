import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { requestFields, type RequestOptions } from './request-fields.ts';
import { resolveBody } from './resolve-body.ts';

const schema = z.strictObject(requestFields);
const options: RequestOptions = {
  timeoutS: { default: 600, max: 3600 },
  webhooks: { allowPrivate: false, progressIntervalMs: 250 },
  drawSeed: () => 42,
  readAsset: () => Promise.reject(new Error('pictures have none')),
};
const url = 'https://example.com/hook';

function webhookOf(body: object, { allowPrivate = false } = {}): unknown {
  const result = resolveBody(body, {
    schema,
    options: { ...options, webhooks: { ...options.webhooks, allowPrivate } },
    problemsOf: () => [],
    inputOf: () => ({}),
  });
  return result.status === 'resolved' ? result.request.webhook : result.problems.map(({ message }) => message);
}

describe('a webhook', () => {
  it('is told of the end only, unless it asks for more', () => {
    expect(webhookOf({})).toBeUndefined();
    expect(webhookOf({ webhook_url: url })).toEqual({ url, events: ['completed'], progressIntervalMs: 250 });
    expect(webhookOf({ webhook_url: url, webhook_events: ['progress', 'started'] })).toMatchObject({
      events: ['progress', 'started'],
    });
  });

  it('needs a URL to have events', () => {
    expect(webhookOf({ webhook_events: ['started'] })).toEqual([
      'webhook_url is missing, expected the URL to send webhook_events to',
    ]);
  });

  it.each([[[]], [['completed', 'completed']], [['ended']], ['completed'], [[1]]])('events are not %j', (events) => {
    const [problem] = webhookOf({ webhook_url: url, webhook_events: events }) as string[];
    expect(problem).toMatch(/^webhook_events.* expected some of started, progress, completed, each once$/);
  });

  it.each([
    '',
    'example.com/hook',
    '/hook',
    'ftp://example.com',
    'https://user:secret@example.com',
    7,
    `${url}?${'x'.repeat(2048)}`,
  ])('a URL is not %s', (value) => {
    const [problem] = webhookOf({ webhook_url: value }) as string[];
    expect(problem).toMatch(/^webhook_url is .*, expected an http or https URL of at most 2048 characters/);
  });

  it('goes to a private address only where that is allowed', () => {
    const inside = { webhook_url: 'http://127.0.0.1:9/hook' };
    expect(webhookOf(inside)).toEqual([
      'webhook_url is "http://127.0.0.1:9/hook", expected a public host: this server sends nothing to private addresses',
    ]);
    expect(webhookOf(inside, { allowPrivate: true })).toMatchObject({ url: inside.webhook_url });
  });
});
