import type { Demand } from '../request/kind.ts';
import type { UpstreamTextInput } from './upstream-text.ts';

/** Characters (UTF-16) per token of English; other languages have fewer. Exact enough for a cost. */
const charactersPerToken = 4;

/** Returns the demand: each text takes one slot of the upstream server. */
export function upstreamTextDemand(input: UpstreamTextInput): Demand {
  const { n, maxTokens } = input;
  const cost = promptTokens(input) + n * maxTokens;
  return { shapeKey: 'text', outputs: n, slots: n, cost };
}

function promptTokens({ params: { prompt, messages = [] } }: UpstreamTextInput): number {
  if (typeof prompt === 'object') return prompt.length;
  const characters = [prompt ?? '', ...messages.map(({ content }) => content)].reduce(
    (sum, { length }) => sum + length,
    0,
  );
  return Math.ceil(characters / charactersPerToken);
}
