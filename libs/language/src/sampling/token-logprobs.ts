import { numberAt } from '@darkroom/core';
import type { TextCodec, TokenLogprob } from '@darkroom/kinds';
import { topTokens } from './top-tokens.ts';

/**
 * Returns the log probability of a token, and the best alternatives.
 *
 * @param logits after penalties and bias, before temperature and filtering.
 * @param count number of alternatives, 0–20.
 */
export function tokenLogprob(logits: Float32Array, id: number, count: number, codec: TextCodec): TokenLogprob {
  const sum = logOfSum(logits);
  const toLogprob = (token: number) => {
    const bytes = codec.bytesOf(token);
    return { token: utf8.decode(bytes), logprob: numberAt(logits, token) - sum, bytes: [...bytes] };
  };
  const top = topTokens(logits, count).filter((token) => numberAt(logits, token) > -Infinity);
  return { ...toLogprob(id), top: top.map(toLogprob) };
}

const utf8 = new TextDecoder('utf-8', { ignoreBOM: true });

/** Returns ln Σ eˣ. */
function logOfSum(logits: Float32Array): number {
  let highest = -Infinity;
  for (let id = 0; id < logits.length; id++) highest = Math.max(highest, numberAt(logits, id));
  let sum = 0;
  for (let id = 0; id < logits.length; id++) sum += Math.exp(numberAt(logits, id) - highest);
  return highest + Math.log(sum);
}
