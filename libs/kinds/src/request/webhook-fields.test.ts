import { requestPolicy } from '@darkroom/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { requestFields } from './request-fields.ts';
import { resolveBody } from './resolve-body.ts';

const schema = z.strictObject(requestFields);
const url = 'https://example.com/hook';

function webhookOf(body: object, { allowPrivate = false } = {}): unknown {
  const result = resolveBody(body, {
    schema,
    options: { ...requestPolicy, webhooks: { allowPrivate } },
    problemsOf: () => [],
    inputOf: () => ({}),
  });
  return result.status === 'resolved' ? result.request.webhook : result.problems.map(({ message }) => message);
}

describe('a webhook', () => {
  it('receives only the completed event by default', () => {
    expect(webhookOf({})).toBeUndefined();
    expect(webhookOf({ webhook_url: url })).toEqual({ url, events: ['completed'], progressIntervalMs: 1000 });
    expect(webhookOf({ webhook_url: url, webhook_events: ['progress', 'started'] })).toMatchObject({
      events: ['progress', 'started'],
    });
  });

  it('requires a URL if there are events', () => {
    expect(webhookOf({ webhook_events: ['started'] })).toEqual([
      'webhook_url is missing, expected the URL to send webhook_events to',
    ]);
  });

  it.each([[[]], [['completed', 'completed']], [['ended']], ['completed'], [[1]]])('rejects events %j', (events) => {
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
  ])('rejects the URL %s', (value) => {
    const [problem] = webhookOf({ webhook_url: value }) as string[];
    expect(problem).toMatch(/^webhook_url is .*, expected an http or https URL of at most 2048 characters/);
  });

  it('may have a private address only if the server allows it', () => {
    const inside = { webhook_url: 'http://127.0.0.1:9/hook' };
    expect(webhookOf(inside)).toEqual([
      'webhook_url is "http://127.0.0.1:9/hook", expected a public host: this server sends nothing to private addresses',
    ]);
    expect(webhookOf(inside, { allowPrivate: true })).toMatchObject({ url: inside.webhook_url });
  });
});
