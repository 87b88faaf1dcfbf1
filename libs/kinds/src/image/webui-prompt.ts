/**
 * The prompt syntax of Stable Diffusion web UI (AUTOMATIC1111): weights and `<lora:id:scale>`. Not supported, and read
 * as text: `BREAK`, `AND`, and the changes between steps `[from:to:when]` and `[a|b]`.
 * Source: its `modules/prompt_parser.py`, `parse_prompt_attention`.
 */
export const promptSyntaxes = ['plain', 'webui'] as const;
export type PromptSyntax = (typeof promptSyntaxes)[number];

/** A part of a prompt whose words have the same weight. */
export interface WeightedText {
  readonly text: string;
  readonly weight: number;
}

/** Maximum absolute weight of a part; larger ones ruin any image. */
export const maxPromptWeight = 10;
/** Factor of round brackets without a number; square brackets divide by it. */
const bracketWeight = 1.1;

const tokens = /\\[^]?|[()[\]]|:\s*([+-]?(?:\d+(?:\.\d*)?|\.\d+))\s*\)|[^\\()[\]:]+|:/g;

/**
 * Returns the parts of a prompt with their weights. `(text)` has the weight 1.1, `[text]` 1/1.1, `(text:1.3)` 1.3; the
 * weights of nested brackets are multiplied. `\` before a bracket makes it text. Brackets that are not closed reach to
 * the end.
 *
 * @example
 *   parsePromptWeights('a (red:1.2) fox'); // 'a ' with 1, 'red' with 1.2, ' fox' with 1
 */
export function parsePromptWeights(prompt: string): WeightedText[] {
  const parts: { text: string; weight: number }[] = [];
  const round: number[] = [];
  const square: number[] = [];
  const multiply = (from: number, factor: number): void => {
    for (let at = from; at < parts.length; at++) parts[at]!.weight *= factor;
  };
  for (const [token, number] of prompt.matchAll(tokens)) {
    if (token === '(') round.push(parts.length);
    else if (token === '[') square.push(parts.length);
    else if (number !== undefined && round.length > 0) multiply(round.pop()!, Number(number));
    else if (token === ')' && round.length > 0) multiply(round.pop()!, bracketWeight);
    else if (token === ']' && square.length > 0) multiply(square.pop()!, 1 / bracketWeight);
    else parts.push({ text: token.startsWith('\\') ? token.slice(1) : token, weight: 1 });
  }
  for (const from of round) multiply(from, bracketWeight);
  for (const from of square) multiply(from, 1 / bracketWeight);
  return joinEqualWeights(parts);
}

function joinEqualWeights(parts: readonly WeightedText[]): WeightedText[] {
  const joined: { text: string; weight: number }[] = [];
  for (const { text, weight } of parts) {
    const last = joined.at(-1);
    if (last?.weight === weight) last.text += text;
    else joined.push({ text, weight });
  }
  return joined;
}

/** An adapter that a prompt names. */
export interface LoraTag {
  /** The text in the prompt. */
  readonly tag: string;
  readonly id: string;
  /** NaN if it is not a number. */
  readonly scale: number;
}

/** Returns a prompt without its `<lora:id:scale>`, and these; the default scale is 1. */
export function takeLoraTags(prompt: string): { prompt: string; tags: LoraTag[] } {
  const tags: LoraTag[] = [];
  const rest = prompt.replaceAll(/<lora:([^:<>]+)(?::([^<>]*))?>/g, (tag, id: string, scale = '1') => {
    tags.push({ tag, id, scale: /^\s*[+-]?(?:\d+(?:\.\d*)?|\.\d+)\s*$/.test(scale) ? Number(scale) : Number.NaN });
    return '';
  });
  return { prompt: tags.length === 0 ? prompt : rest.replaceAll(/ {2,}/g, ' ').trim(), tags };
}
