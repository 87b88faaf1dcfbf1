import type { TokenLogprob, UpstreamTextInput } from '@darkroom/kinds';
import { describe, expect, it } from 'vitest';
import { GrowingText, secretsOf } from './text-chunks.ts';
import { safeReason } from './http/upstream-error.ts';

const logprobsOf = (token: string): TokenLogprob[] => [{ token, logprob: -1, bytes: [], top: [] }];
const growing = (params: Partial<UpstreamTextInput>) =>
  new GrowingText({ maxTokens: 2, ...params } as UpstreamTextInput);

describe('log probabilities', () => {
  it('are dropped unless requested', () => {
    const text = growing({});
    // Still a liveness signal.
    expect([...text.add('', logprobsOf('x'.repeat(1000)))]).toEqual([undefined]);
    expect([...text.add('owl', logprobsOf('owl'))][0]).toEqual({ type: 'delta', offset: 0, text: 'owl' });
  });

  it('are emitted without text too, and bounded in size', () => {
    const text = growing({ logprobs: 0 });
    expect([...text.add('', logprobsOf('owl'))][0]).toMatchObject({
      type: 'delta',
      text: '',
      facts: { logprobs: expect.stringContaining('owl') as string },
    });
    const rest = (): unknown[] => [...text.add('', logprobsOf('x'.repeat(10_000)))];
    for (let count = 0; count < 8; count++) rest();
    expect(rest).toThrow('sent more log probabilities than 81920 characters');
  });
});

const schema = { type: 'object' as const, properties: { color: { enum: ['my secret wish'] } } };
const call = { id: 'x', type: 'function', function: { name: 'draw', arguments: { color: 'my secret wish' } } };

it.each<[string, Partial<UpstreamTextInput['params']>]>([
  ['a prompt', { prompt: 'my secret wish' }],
  ['a message', { messages: [{ role: 'user', content: 'my secret wish' }] }],
  ['a previous tool call', { messages: [{ role: 'assistant', content: '', tool_calls: [call] }] }],
  ['a grammar', { grammar: 'root ::= "my secret wish"' }],
  ['a schema', { response_format: { type: 'json_schema', json_schema: { name: 'wish', schema } } }],
  ['a stop string', { stop: 'my secret wish' }],
  ['one of several stop strings', { stop: ['x', 'my secret wish'] }],
  ['the name of a tool', { tools: [{ type: 'function', function: { name: 'my secret wish' } }] }],
  [
    'the description of a tool',
    { tools: [{ type: 'function', function: { name: 'draw', description: 'my secret wish' } }] },
  ],
  ['the parameters of a tool', { tools: [{ type: 'function', function: { name: 'draw', parameters: schema } }] }],
])('hides an error reason that contains %s', (_what, params) => {
  const secrets = secretsOf({ params, n: 1, seed: 1, maxTokens: 2 });
  expect(safeReason('cannot read my secret wish', secrets)).not.toContain('secret');
  expect(safeReason('true: a json_object of tokens [5, 6]', secrets)).toContain('true: a json_object');
});
