import { describe, expect, it } from 'vitest';
import { heaviestTextField, textBytes } from './text-bytes.ts';
import type { TextInput } from './text-input.ts';

const input: TextInput = {
  prompt: [1, 2, 3],
  n: 1,
  maxTokens: 1000,
  temperature: 0,
  topP: 1,
  topK: 0,
  minP: 0,
  presencePenalty: 0,
  frequencyPenalty: 0,
  logitBias: {},
  seed: 1,
  stop: [],
  ignoreEos: false,
};

/** Bytes that it takes to say probabilities. */
function said(logprobs: number): number {
  return textBytes({ ...input, logprobs }) - textBytes(input);
}

describe('the bytes of a text', () => {
  it('are at least what its tokens take in the log, the snapshot, the output and a checkpoint', () => {
    // English has 4.5 bytes a token here, and what is rare up to 16.
    expect(textBytes(input)).toBeGreaterThan(1000 * (3 * 16 + 24));
    expect(textBytes({ ...input, maxTokens: 2000 }) - textBytes(input)).toBe(1000 * 72);
    expect(textBytes({ ...input, n: 3 })).toBeGreaterThan(2.5 * textBytes(input));
  });

  it('grow with what is said of probabilities: of the token, and of each other one', () => {
    const line = JSON.stringify({
      token: ' background',
      logprob: -0.123456789,
      bytes: [...Buffer.from(' background')],
    });
    expect(said(0)).toBeGreaterThan(2 * 1000 * line.length);
    expect(said(20)).toBeGreaterThan(20 * said(0));
  });

  it('grow with what was given, which may be kept twice', () => {
    const prompt = Array.from({ length: 1000 }, () => 12_345);
    expect(textBytes({ ...input, prompt }) - textBytes(input)).toBeGreaterThan(2 * 5900);
  });

  it.each<[string, Partial<TextInput>, object?]>([
    ['max_tokens', {}],
    ['n', { n: 2 }],
    ['top_logprobs', { n: 2, logprobs: 20 }],
    ['max_tokens', { logprobs: 0 }],
    ['prompt', { maxTokens: 10, prompt: Array.from({ length: 1000 }, () => 12_345) }, { prompt: 'a b c' }],
    ['messages', { maxTokens: 10, prompt: Array.from({ length: 1000 }, () => 12_345) }, { messages: [] }],
    ['messages', { maxTokens: 10, said: { messages: ['x'.repeat(5000)] } }, { messages: [] }],
    [
      'logit_bias',
      { maxTokens: 24, logitBias: Object.fromEntries(Array.from({ length: 1024 }, (_, id) => [id, -100])) },
      { messages: [] },
    ],
    ['stop', { maxTokens: 16, stop: Array.from({ length: 16 }, () => 'x'.repeat(256)) }],
  ])('say to lower %s', (field, changes, body) => {
    expect(heaviestTextField({ ...input, ...changes }, body)).toBe(field);
  });
});
