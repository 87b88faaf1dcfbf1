import { DarkroomError } from '@darkroom/core';

/**
 * Checks that no class of characters names one beyond ASCII: xgrammar 0.1.27 reads `[a-zé]` as `[a-z]`, `[\\u4e00-\\u9fff]`
 * as anything, and `[^é]` as if it did not name it.
 *
 * @param constraint any part of one; grammars in it are looked at.
 * @throws DarkroomError `invalid_request` with the place in the grammar.
 */
export function checkClasses(constraint: unknown): void {
  if (typeof constraint !== 'object' || constraint === null) return;
  for (const [name, value] of Object.entries(constraint))
    if (name === 'grammar' && typeof value === 'string') checkGrammar(value);
    else checkClasses(value);
}

/** A comment, a text, or a class. */
const part = /#[^\n]*|"(?:\\.|[^"\\\n])*"|\[((?:\\.|[^\]\\\n])*)\]/gu;
const beyond = /\\u\{?[\da-f]+|\\U[\da-f]{8}|\\x[\da-f]{2}|[^\0-\x7f]/giu;

function checkGrammar(grammar: string): void {
  for (const { index, 1: content } of grammar.matchAll(part))
    for (const found of content?.matchAll(beyond) ?? [])
      if (codeOf(found[0]) > 0x7f) throw classError(grammar, index + 1 + found.index, found[0]);
}

function codeOf(letter: string): number {
  return letter.startsWith('\\') ? Number.parseInt(letter.replace(/^\\[ux]\{?/iu, ''), 16) : letter.codePointAt(0)!;
}

function classError(grammar: string, at: number, letter: string): DarkroomError {
  const before = grammar.slice(0, at).split('\n');
  const place = `line ${before.length}, column ${before.at(-1)!.length + 1}`;
  const message = `EBNF: ${place}: "${letter}" in a class: expected ASCII; name others as texts, ("é" | "ü")`;
  return new DarkroomError('invalid_request', 'text.check-grammar', message);
}
