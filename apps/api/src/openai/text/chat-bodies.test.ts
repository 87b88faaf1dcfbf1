import { allKeys } from '@darkroom/testing';
import { describe, expect, it } from 'vitest';
import { errorSchema } from '../../http/error-response.ts';
import { postJson, openTextApi } from '../../testing/open-text-api.ts';

const path = '/v1/chat/completions';
const messages = [{ role: 'user', content: 'something cold' }];

async function errorOf(response: Response) {
  const { error } = errorSchema.parse(await response.json());
  return { status: response.status, ...error };
}

const tool = { type: 'function', function: { name: 'draw', parameters: { type: 'object', properties: {} } } };

describe('rejects without storing a request', () => {
  it.each<[object, string | RegExp, string?]>([
    [{ messages: [] }, /^messages is \[\], expected a list of 1 to /],
    [{ messages: undefined }, /^messages is missing, expected a list of messages /],
    [{ messages: [null] }, 'messages.0 is null, expected a message {"role", "content"}'],
    [{ messages: [[]] }, 'messages.0 is [], expected a message {"role", "content"}'],
    [{ messages: [{ role: 'user', content: null }] }, 'messages.0.content is null, expected text'],
    [
      { messages: [{ role: 'user', content: [] }] },
      /^messages\.0\.content is \[\], expected text, or at least one part/,
    ],
    [
      {
        messages: [
          {
            role: 'user',
            content: [
              { type: 'text', text: 'x' },
              { type: 'image_url', image_url: {} },
            ],
          },
        ],
      },
      'messages.0.content.1.image_url.url is missing, expected an image: a data URL in base64, or an https URL',
      'messages.0.content.1.image_url.url',
    ],
    [
      { messages: [{ role: 'user', content: [{ type: 'input_audio', input_audio: {} }] }] },
      'messages.0.content.0.type is "input_audio", expected "text" or "image_url"',
      'messages.0.content.0.type',
    ],
    [
      { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://example.com/a' } }] }] },
      'messages.0.content.0.image_url.url is "https://example.com/a", expected only text: writer takes no images',
      'messages.0.content.0.image_url.url',
    ],
    [
      { messages: [{ role: 'user', content: [{ type: 'text' }] }] },
      'messages.0.content.0.text is missing, expected text',
    ],
    [
      { stream_options: { include_usage: true } },
      /^stream_options is \{.*\}, expected nothing without "stream": true$/,
    ],
    [{ stream: 'yes' }, 'stream is "yes", expected true or false'],
    [{ top_logprobs: 2 }, 'top_logprobs is 2, expected nothing without "logprobs": true'],
    [{ logprobs: 2 }, 'logprobs is 2, expected true or false'],
    [{ n: 11 }, 'n is 11, expected a whole number from 1 to 10'],
    [{ n: 0 }, 'n is 0, expected a whole number from 1 to 10'],
    [{ temperature: -1 }, 'temperature is -1, expected a number from 0 to 2'],
    [{ stop: 'x'.repeat(10_000) }, /^stop is "x+… \(10000 characters\), expected a text of 1 to 256 characters, /],
    [{ logit_bias: { 6144: 1 } }, 'logit_bias is "6144", expected an id below 6144, as many as writer has'],
    [{ max_completion_tokens: 0 }, 'max_completion_tokens is 0, expected a whole number from 1 to 1000000'],
    [
      { max_completion_tokens: 300 },
      /^max_completion_tokens is 300, expected at most \d+: this model's maximum context length is 256 tokens, /,
    ],
    [
      { response_format: { type: 'json_schema', json_schema: { name: 'x' } } },
      'response_format.json_schema.schema is missing, expected a JSON Schema, as an object',
      'response_format.json_schema.schema',
    ],
    [
      { response_format: { type: 'json_schema', json_schema: { schema: { type: 'array', contains: {} } } } },
      /^response_format\.json_schema\.schema\.contains: is not supported/,
      'response_format.json_schema.schema',
    ],
    [{ response_format: 'json' }, /^response_format is "json", expected an object such as /],
    [{ tools: [], tool_choice: 'required' }, 'tool_choice is "required", expected auto or none without tools'],
    [
      { tools: [tool] },
      /^tools is \[.*, expected nothing: writer calls none, for its template shows no tools$/,
      'tools',
    ],
    [
      { tools: [tool], tool_choice: { type: 'function', function: { name: 'sing' } } },
      'tool_choice.function.name is "sing", expected the name of one of tools: draw',
      'tool_choice.function.name',
    ],
    [{ messages: [{ role: 'assistant', tool_calls: [{}] }] }, /^messages\.0\.tool_calls\.0\.function is missing, /],
  ])('%j', async (body, message, param?) => {
    const test = await openTextApi();
    const before = await allKeys(test.store);
    const error = await errorOf(await postJson(test, path, { messages, ...body }));
    expect(error).toMatchObject({ status: 400, type: 'invalid_request_error', ...(param && { param }) });
    expect(error.message).toMatch(message);
    expect(await allKeys(test.store)).toEqual(before);
  });

  it('a prompt longer than the context, with both lengths', async () => {
    const test = await openTextApi();
    const content = 'cold '.repeat(300);
    const error = await errorOf(await postJson(test, path, { messages: [{ role: 'user', content }], stream: true }));
    expect(error).toMatchObject({ status: 400, code: 'context_length_exceeded', param: 'messages' });
    expect(error.message).toMatch(
      /^messages have \d{3,4} tokens, expected at most 255: this model's maximum context length is 256 tokens, which writer reads and writes together$/,
    );
  });

  it('an image model, and an unknown one', async () => {
    const test = await openTextApi();
    const messageOf = {
      tiny: 'model tiny has the kind image, which this route does not serve: use /v1/images/generations',
      'gpt-4o': 'model "gpt-4o" was not found, expected one of writer',
    };
    for (const [model, message] of Object.entries(messageOf))
      expect(await errorOf(await postJson(test, path, { model, messages }))).toMatchObject({
        status: 404,
        code: 'model_not_found',
        message,
      });
  });

  it('a request when the queue is full, with a 503 that SDKs retry', async () => {
    const test = await openTextApi({ config: { queueMaxLength: 0 } });
    const response = await postJson(test, path, { messages, stream: true });
    expect([response.status, response.headers.get('x-should-retry')]).toEqual([503, null]);
    expect(response.headers.get('retry-after')).toBe('5');
  });
});
