import type { Demand } from '../request/kind.ts';
import { textOf } from './form/message-content.ts';
import type { UpstreamTextInput } from './upstream-text.ts';

/** Characters (UTF-16) per token of English; other languages have fewer. Exact enough for a cost. */
const charactersPerToken = 4;

/** Tokens of an image, as in LLaVA 1.5 (576 patches of 14 × 14 pixels); other models have more or fewer. */
const tokensPerImage = 576;

/** Returns the demand: each text takes one slot of the upstream server. */
export function upstreamTextDemand(input: UpstreamTextInput): Demand {
  const { n, maxTokens } = input;
  const cost = promptTokens(input) + n * maxTokens;
  return { shapeKey: 'text', outputs: n, slots: n, cost };
}

function promptTokens({ params: { prompt, messages = [] }, images = [] }: UpstreamTextInput): number {
  if (typeof prompt === 'object') return prompt.length;
  const characters = [prompt ?? '', ...messages.map(({ content }) => textOf(content))].reduce(
    (sum, { length }) => sum + length,
    0,
  );
  return Math.ceil(characters / charactersPerToken) + images.length * tokensPerImage;
}
