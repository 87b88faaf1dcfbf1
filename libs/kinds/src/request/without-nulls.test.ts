import { expect, it } from 'vitest';
import { z } from 'zod';
import { imageRequestSchema } from '../image/image-request-schema.ts';
import { textSchema } from '../text/text-schema.ts';
import { withoutNulls } from './without-nulls.ts';

it.each([
  [{ prompt: 'a fox', seed: null, preview: null }, { prompt: 'a fox' }],
  // A required field stays, so that the error reports null.
  [{ prompt: null }, { prompt: null }],
  // A misspelled field stays, to be rejected.
  [
    { prompt: 'a fox', sede: null },
    { prompt: 'a fox', sede: null },
  ],
  [{ loras: [{ id: 'pixels', scale: null }, null] }, { loras: [{ id: 'pixels' }, null] }],
  [null, null],
  ['text', 'text'],
  [[null], [null]],
])('removes optional nulls of an image request: %j becomes %j', (body, expected) => {
  expect(withoutNulls(imageRequestSchema, body)).toEqual(expected);
});

it('keeps nulls in a JSON Schema', () => {
  const schema = { type: 'object', properties: { a: { const: null, default: null, enum: [null] } } };
  const tool = { type: 'function', function: { name: 'draw', description: null, strict: null, parameters: schema } };
  const body = {
    messages: [{ role: 'assistant', content: '', tool_calls: null }],
    response_format: { type: 'json_schema', json_schema: { schema } },
    tools: [tool],
    logit_bias: { 12: null },
  };
  expect(withoutNulls(textSchema, body)).toEqual({
    messages: [{ role: 'assistant', content: '' }],
    response_format: { type: 'json_schema', json_schema: { schema } },
    tools: [{ type: 'function', function: { name: 'draw', parameters: schema } }],
    logit_bias: { 12: null },
  });
});

it('does not mutate the body or copy lists of numbers', () => {
  const body = Object.freeze({ prompt: Object.freeze([1, 2, 3]), seed: null });
  const rest = withoutNulls(textSchema, body) as { prompt: unknown };
  expect(rest).toEqual({ prompt: [1, 2, 3] });
  expect(rest.prompt).toBe(body.prompt);
});

it('removes nulls behind defaults, refinements and unions', () => {
  const inner = z.strictObject({ a: z.string().optional() });
  const schema = z.strictObject({
    b: inner.refine(() => true).default({}),
    c: z.union([z.literal('off'), inner]).nullable(),
  });
  expect(withoutNulls(schema, { b: { a: null }, c: { a: null } })).toEqual({ b: {}, c: {} });
});
