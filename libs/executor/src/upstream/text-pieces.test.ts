import type { TokenLogprob, UpstreamTextInput } from '@darkroom/kinds';
import { describe, expect, it } from 'vitest';
import { GrowingText, secretsOf } from './text-pieces.ts';
import { shownReason } from './upstream-error.ts';

const said = (token: string): TokenLogprob[] => [{ token, logprob: -1, bytes: [], top: [] }];
const growing = (asked: Partial<UpstreamTextInput>) => new GrowingText({ maxTokens: 2, ...asked } as UpstreamTextInput);

describe('what is said of tokens', () => {
  it('is dropped where nobody asked for it', () => {
    const text = growing({});
    // But it is at it.
    expect([...text.add('', said('x'.repeat(1000)))]).toEqual([undefined]);
    expect([...text.add('owl', said('owl'))][0]).toEqual({ type: 'delta', offset: 0, text: 'owl' });
  });

  it('comes without text too, and is bounded', () => {
    const text = growing({ logprobs: 0 });
    expect([...text.add('', said('owl'))][0]).toMatchObject({
      type: 'delta',
      text: '',
      facts: { logprobs: expect.stringContaining('owl') as string },
    });
    const rest = (): unknown[] => [...text.add('', said('x'.repeat(10_000)))];
    for (let count = 0; count < 8; count++) rest();
    expect(rest).toThrow('said more of its tokens than 81920 characters');
  });
});

const schema = { type: 'object' as const, properties: { color: { enum: ['my secret wish'] } } };
const call = { id: 'x', type: 'function', function: { name: 'draw', arguments: { color: 'my secret wish' } } };

it.each<[string, Partial<UpstreamTextInput['asked']>, string?]>([
  ['a prompt', { prompt: 'my secret wish' }],
  ['a message', { messages: [{ role: 'user', content: 'my secret wish' }] }],
  ['a call that was made', { messages: [{ role: 'assistant', content: '', tool_calls: [call] }] }],
  ['a grammar', { grammar: 'root ::= "my secret wish"' }],
  ['a grammar made of tools', {}, 'root ::= "my secret wish"'],
  ['a schema', { response_format: { type: 'json_schema', json_schema: { name: 'wish', schema } } }],
  ['what ends a text', { stop: 'my secret wish' }],
  ['one of what ends a text', { stop: ['x', 'my secret wish'] }],
  ['the name of a tool', { tools: [{ type: 'function', function: { name: 'my secret wish' } }] }],
  ['what a tool does', { tools: [{ type: 'function', function: { name: 'draw', description: 'my secret wish' } }] }],
  ['what a tool takes', { tools: [{ type: 'function', function: { name: 'draw', parameters: schema } }] }],
])('shows no reason with %s in it', (_what, asked, callGrammar) => {
  const secrets = secretsOf({ asked, n: 1, seed: 1, maxTokens: 2, ...(callGrammar !== undefined && { callGrammar }) });
  expect(shownReason('cannot read my secret wish', secrets)).not.toContain('secret');
  expect(shownReason('true: a json_object of tokens [5, 6]', secrets)).toContain('true: a json_object');
});
