/** Compares with transformers' logits processors: tools/golden/record-sampling.py. */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { adjustLogits } from './adjust-logits.ts';
import { bestToken, chooseRatedToken, chooseToken, type SamplingOptions, selectCandidates } from './choose-token.ts';
import { RandomNumbers } from './random-numbers.ts';
import { tokenLogprob } from './token-logprobs.ts';
import { topTokens } from './top-tokens.ts';

interface Kept extends SamplingOptions {
  ids: number[] | null;
  probabilities: [number, number][];
}
interface Case {
  logits: string;
  bias: Record<string, number>;
  logprobs: [number, number][];
  kept: Kept[];
}

const vectors = resolve(import.meta.dirname, '../../../../tools/golden/vectors/sampling.json');
const recorded = JSON.parse(readFileSync(vectors, 'utf8')) as {
  xoshiro: { state: [number, number, number, number]; words: number[] };
  cases: Case[];
};
const cases = recorded.cases.map(({ logits, ...rest }) => {
  const bytes = Buffer.from(logits, 'base64');
  return { ...rest, logits: new Float32Array(new Uint8Array(bytes).buffer) };
});
const all: SamplingOptions = { temperature: 1, topK: 0, topP: 1, minP: 0 };
const none = { presencePenalty: 0, frequencyPenalty: 0 };

/** Returns the probability of each candidate. */
function keptOf(logits: Float32Array, options: SamplingOptions): Map<number, number> {
  const { ids, weights, count, totalWeight } = selectCandidates(logits, options)!;
  return new Map(Array.from({ length: count }, (_, at) => [ids[at]!, weights[at]! / totalWeight]));
}

describe.each(cases.map((each, number) => ({ number, ...each })))(
  'logits $number',
  ({ logits, kept, bias, logprobs }) => {
    it.each(kept)(
      'are filtered at $temperature, $topK, $topP, $minP as by transformers',
      ({ ids, probabilities, ...options }) => {
        const candidates = keptOf(logits, options);
        expect([...candidates.keys()]).toEqual(ids ?? Array.from(logits.keys()));
        for (const [id, probability] of probabilities) expect(candidates.get(id)).toBeCloseTo(probability, 6);
      },
    );

    it('have the log probabilities of torch, with biases', () => {
      const adjusted = logits.slice();
      const entries = Object.entries(bias).map(([id, value]) => [Number(id), value] as const);
      adjustLogits(adjusted, { ...none, bias: entries }, new Map());
      const codec = { bytesOf: (id: number) => new TextEncoder().encode(`t${id}`) };
      const result = tokenLogprob(adjusted, 7, logprobs.length, codec as Parameters<typeof tokenLogprob>[3]);
      expect(result.top.map(({ token }) => token)).toEqual(logprobs.map(([id]) => `t${id}`));
      for (const [at, [, logprob]] of logprobs.entries()) expect(result.top[at]!.logprob).toBeCloseTo(logprob, 5);
      expect(result).toMatchObject({
        token: 't7',
        bytes: [116, 55],
        logprob: expect.closeTo(logOf(adjusted, 7), 6) as number,
      });
    });
  },
);

function logOf(logits: Float32Array, id: number): number {
  return Math.log(keptOf(logits, all).get(id)!);
}

describe('chooseToken', () => {
  const { logits } = cases[0]!;

  it('takes the best token at temperature 0, without a random number', () => {
    const random = new RandomNumbers(1);
    const before = random.snapshot();
    const id = chooseToken(logits, { ...all, temperature: 0, topP: 0.5 }, random);
    expect(id).toBe(logits.indexOf(Math.max(...logits)));
    expect(random.snapshot()).toEqual(before);
    const rated = chooseRatedToken(logits, { ...all, temperature: 0 }, random);
    expect(rated).toEqual({ id, probability: expect.closeTo(keptOf(logits, all).get(id)!, 12) as number });
  });

  it('takes the first of equal logits', () => {
    const equals = Float32Array.of(1, 3, 3, 2);
    expect([bestToken(equals), topTokens(equals, 2)]).toEqual([1, [1, 2]]);
  });

  it('draws each token with its probability', () => {
    const random = new RandomNumbers(7);
    const options = { temperature: 1, topK: 8, topP: 1, minP: 0 };
    const expected = keptOf(logits, options);
    const counts = new Map<number, number>();
    const draws = 40_000;
    for (let at = 0; at < draws; at++) {
      const id = chooseToken(logits, options, random);
      counts.set(id, (counts.get(id) ?? 0) + 1);
    }
    for (const [id, probability] of expected) {
      const deviation = Math.sqrt(draws * probability * (1 - probability));
      expect(Math.abs((counts.get(id) ?? 0) - draws * probability)).toBeLessThan(5 * deviation + 1);
    }
    expect([...counts.keys()].every((id) => expected.has(id))).toBe(true);
  });

  it('never takes a token with logit -Infinity', () => {
    const excluded = logits.map((logit, id) => (id % 2 === 0 ? -Infinity : logit));
    const random = new RandomNumbers(7);
    for (let at = 0; at < 200; at++) expect(chooseToken(excluded, { ...all, temperature: 2 }, random) % 2).toBe(1);
  });

  it.each([[[1, NaN, 2]], [[NaN]], [[-Infinity, -Infinity]], [[1, Infinity]]])('returns -1 for %j', (values) => {
    const random = new RandomNumbers(1);
    expect(chooseToken(Float32Array.from(values), all, random)).toBe(-1);
    expect(chooseRatedToken(Float32Array.from(values), all, random)).toBeUndefined();
  });
});

describe('penalties', () => {
  it('follow the formula of OpenAI: by count and by presence', () => {
    const logits = Float32Array.of(1, 2, 3, 4);
    const counts = new Map([
      [1, 3],
      [3, 1],
    ]);
    adjustLogits(logits, { bias: [[0, -5]], presencePenalty: 0.5, frequencyPenalty: 0.25 }, counts);
    expect([...logits]).toEqual([-4, 2 - 3 * 0.25 - 0.5, 3, 4 - 0.25 - 0.5]);
  });
});

describe('random numbers', () => {
  it('equal those of xoshiro128**', () => {
    const random = new RandomNumbers(recorded.xoshiro.state);
    expect(recorded.xoshiro.words.map(() => random.nextWord())).toEqual(recorded.xoshiro.words);
  });

  it('are seeded by SplitMix64', () => {
    // Published output of SplitMix64 for seed 1234567.
    const [first, second] = [6_457_827_717_110_365_317n, 3_203_168_211_198_807_973n];
    const [a, b, c, d] = new RandomNumbers(1_234_567).snapshot().map(BigInt) as [bigint, bigint, bigint, bigint];
    expect([(b << 32n) | a, (d << 32n) | c]).toEqual([first, second]);
  });

  it('resume from a state, and differ by seed', () => {
    const random = new RandomNumbers(2 ** 32 - 1);
    const numbers = Array.from({ length: 100 }, () => random.next());
    const again = new RandomNumbers(random.snapshot());
    expect(Array.from({ length: 5 }, () => again.next())).toEqual(Array.from({ length: 5 }, () => random.next()));
    expect(numbers.every((number) => number >= 0 && number < 1)).toBe(true);
    expect(new RandomNumbers(0).next()).not.toBe(new RandomNumbers(1).next());
  });
});

it('a nucleus is the smallest set, also if many tokens have nearly equal weights', () => {
  const logits = Float32Array.from({ length: 64 }, (_, id) => id * 1e-4);
  const weights = Array.from(logits, (logit) => Math.exp(logit)).toReversed();
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  for (const topP of [0.01, 0.3, 0.5, 0.9]) {
    let count = 0;
    for (let sum = 0; sum < topP * total; sum += weights[count++]!);
    const ids = [...keptOf(logits, { ...all, topP }).keys()];
    expect(ids).toEqual(Array.from({ length: count }, (_, at) => 64 - count + at));
  }
});
