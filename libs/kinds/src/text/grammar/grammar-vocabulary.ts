import type { TextCodec } from '../codec/text-codec.ts';
import type { GrammarVocabulary } from './grammar-message.ts';

const none = new Uint8Array(0);

/** The tokens that a grammar may choose among: special ones are no text, and never part of what it allows. */
export function grammarVocabulary(codec: TextCodec, endIds: readonly number[]): GrammarVocabulary {
  const isText = (id: number) => !codec.isSpecial(id) && !endIds.includes(id);
  const tokens = Array.from({ length: codec.vocabularySize }, (_, id) => (isText(id) ? codec.bytesOf(id) : none));
  return { tokens, endIds };
}
