import type { TextCodec, TokenLogprob } from '@darkroom/kinds';
import { topTokens } from './top-tokens.ts';

/**
 * How probable a token was, and the best there were beside it.
 *
 * @param logits after penalties and bias, before temperature and cuts.
 * @param count of alternatives, 0–20.
 */
export function tokenLogprob(logits: Float32Array, id: number, count: number, codec: TextCodec): TokenLogprob {
  const sum = logOfSum(logits);
  const say = (token: number) => {
    const bytes = codec.bytesOf(token);
    return { token: utf8.decode(bytes), logprob: logits[token]! - sum, bytes: [...bytes] };
  };
  const top = topTokens(logits, count).filter((token) => logits[token]! > -Infinity);
  return { ...say(id), top: top.map(say) };
}

const utf8 = new TextDecoder('utf-8', { ignoreBOM: true });

/** ln Σ eˣ. */
function logOfSum(logits: Float32Array): number {
  let highest = -Infinity;
  for (let id = 0; id < logits.length; id++) if (logits[id]! > highest) highest = logits[id]!;
  let sum = 0;
  for (let id = 0; id < logits.length; id++) sum += Math.exp(logits[id]! - highest);
  return highest + Math.log(sum);
}
