import type { Demand } from '../../kind.ts';
import { textBytes } from '../text-bytes.ts';
import type { UpstreamTextInput } from './upstream-text.ts';

/** Of English in UTF-16; others have fewer. A cost needs to be no better than that. */
const charactersPerToken = 4;

/** A text takes one of the places that the server has. */
export function upstreamTextDemand(input: UpstreamTextInput): Demand {
  const { n, maxTokens } = input;
  const cost = promptTokens(input) + n * maxTokens;
  return { shapeKey: 'text', outputs: n, slots: n, cost, bytes: textBytes(input) };
}

function promptTokens({ asked: { prompt, messages = [] } }: UpstreamTextInput): number {
  if (typeof prompt === 'object') return prompt.length;
  const characters = [prompt ?? '', ...messages.map(({ content }) => content)].reduce(
    (sum, { length }) => sum + length,
    0,
  );
  return Math.ceil(characters / charactersPerToken);
}
