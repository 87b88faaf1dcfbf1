import type { Tokenizer } from '@huggingface/tokenizers';

/** A decoder of a tokenizer.json, as far as it is looked at. */
export interface DecoderConfig {
  readonly type: string;
  /** Of a `Sequence`. */
  readonly decoders?: readonly DecoderConfig[] | undefined;
  /** Of a `Replace`. */
  readonly pattern?: { readonly String?: string | undefined } | undefined;
  readonly content?: string | undefined;
  /** Of a `Metaspace`. */
  readonly replacement?: string | undefined;
}

/** The decoders of which each token's bytes are known, whatever stands beside it. */
export const knownDecoders = ['ByteLevel', 'ByteFallback', 'Replace', 'Metaspace', 'Fuse', 'Strip'] as const;

/**
 * Makes the function that gives the bytes of a token. A text is its tokens' bytes joined and read as UTF-8: so text can be
 * decoded token by token. `Strip`, which takes the space from the beginning of a whole text, does nothing here: what a
 * model writes goes on after its prompt.
 *
 * @throws Error naming a decoder that is not known.
 */
export function createTokenBytes(
  tokenizer: Tokenizer,
  decoder: DecoderConfig | null | undefined,
): (id: number) => Uint8Array {
  const steps = decoder == null ? [] : flatten(decoder);
  const unknown = steps.find(({ type }) => knownDecoders.every((known) => known !== type));
  if (unknown !== undefined)
    throw new Error(`decoder: ${unknown.type} is not supported; supported are ${knownDecoders.join(', ')}`);
  const added = tokenizer.get_added_tokens_decoder();
  const encoder = new TextEncoder();
  const decode = steps.some(({ type }) => type === 'ByteLevel') ? bytesOfLetters : createReplacer(steps, encoder);
  return (id) => {
    const content = added.get(id)?.content;
    if (content !== undefined) return encoder.encode(content);
    const token = tokenizer.id_to_token(id);
    return token === undefined ? new Uint8Array(0) : decode(token);
  };
}

function flatten(decoder: DecoderConfig): readonly DecoderConfig[] {
  return decoder.type === 'Sequence' ? (decoder.decoders ?? []).flatMap(flatten) : [decoder];
}

/** A token of a vocabulary of bytes: each letter stands for one. */
function bytesOfLetters(token: string): Uint8Array {
  return Uint8Array.from(token, (letter) => byteOfLetter.get(letter) ?? '?'.codePointAt(0)!);
}

/** A token of a vocabulary of text, with `<0x0A>` for single bytes. */
function createReplacer(
  steps: readonly DecoderConfig[],
  encoder: { encode(text: string): Uint8Array },
): (token: string) => Uint8Array {
  const hasBytes = steps.some(({ type }) => type === 'ByteFallback');
  const replacements = steps.flatMap(({ type, pattern, content = '', replacement = '▁' }) => {
    if (type === 'Metaspace') return [[replacement, ' '] as const];
    return type === 'Replace' && pattern?.String !== undefined ? [[pattern.String, content] as const] : [];
  });
  return (token) => {
    const byte = hasBytes ? /^<0x([\da-f]{2})>$/iu.exec(token)?.[1] : undefined;
    if (byte !== undefined) return Uint8Array.of(Number.parseInt(byte, 16));
    return encoder.encode(replacements.reduce((text, [from, to]) => text.replaceAll(from, to), token));
  };
}

/** GPT-2's letters for bytes: printable ones stand for themselves, the others for what follows U+00FF in their order. */
const byteOfLetter = new Map<string, number>();
for (let byte = 0, others = 0; byte < 256; byte++) {
  const isPrintable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte !== 173);
  byteOfLetter.set(String.fromCodePoint(isPrintable ? byte : 256 + others++), byte);
}
