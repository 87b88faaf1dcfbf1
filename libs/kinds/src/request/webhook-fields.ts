/** Request fields for a webhook, and their validation. */
import { type FieldProblem, invalidValue, mayBePublicHost, webhookEvents, type WebhookRequest } from '@darkroom/core';
import { z } from 'zod';

const maxUrlCharacters = 2048;
const urlExpected = `an http or https URL of at most ${maxUrlCharacters} characters, without a user or password`;
const eventsExpected = `some of ${webhookEvents.join(', ')}, each once`;

/** Webhook fields of request schemas. */
export const webhookFields = {
  webhook_url: z
    .string({ error: urlExpected })
    .max(maxUrlCharacters, { error: urlExpected })
    .refine(isWebhookUrl, { error: urlExpected })
    .optional()
    .meta({
      description:
        'URL to POST events to, signed by the Standard Webhooks scheme. Private addresses are rejected unless the server allows them.',
      example: 'https://example.com/darkroom',
    }),
  webhook_events: z
    .array(z.enum(webhookEvents, { error: eventsExpected }), { error: eventsExpected })
    .min(1, { error: eventsExpected })
    .refine((events) => new Set(events).size === events.length, { error: eventsExpected })
    .optional()
    .meta({ description: 'Events to send; `completed` is any end. Default: ["completed"].' }),
};

type WebhookBody = z.infer<z.ZodObject<typeof webhookFields>>;

/** Returns problems that the schema cannot detect. */
export function webhookProblems(body: WebhookBody, { allowPrivate }: { allowPrivate: boolean }): FieldProblem[] {
  const { webhook_url: url, webhook_events: events } = body;
  if (url === undefined)
    return events === undefined ? [] : [invalidValue('webhook_url', url, 'the URL to send webhook_events to')];
  if (allowPrivate || mayBePublicHost(new URL(url).hostname)) return [];
  return [invalidValue('webhook_url', url, 'a public host: this server sends nothing to private addresses')];
}

/** Min. time between two `progress` webhooks of a request, ms. */
const progressIntervalMs = 1000;

/** Returns the webhook of a body with its defaults; undefined without one. */
export function resolveWebhook({
  webhook_url: url,
  webhook_events: events = ['completed'],
}: WebhookBody): WebhookRequest | undefined {
  return url === undefined ? undefined : { url, events, progressIntervalMs };
}

function isWebhookUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, username, password } = new URL(text);
  return (protocol === 'http:' || protocol === 'https:') && username === '' && password === '';
}
