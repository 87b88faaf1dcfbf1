import type { TokenLogprob, UpstreamTextInput } from '@darkroom/kinds';
import { describe, expect, it } from 'vitest';
import { GrowingText } from './text-pieces.ts';

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
