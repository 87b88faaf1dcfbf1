import type { Tokenizer } from '@huggingface/tokenizers';

/** The fields of a tokenizer.json decoder that are used here. */
export interface DecoderConfig {
  readonly type: string;
  /** For `Sequence`. */
  readonly decoders?: readonly DecoderConfig[] | undefined;
  /** For `Replace`. */
  readonly pattern?: { readonly String?: string | undefined } | undefined;
  readonly content?: string | undefined;
  /** For `Metaspace`. */
  readonly replacement?: string | undefined;
}

/** Supported decoders: those whose bytes for a token do not depend on the tokens around it. */
export const knownDecoders = ['ByteLevel', 'ByteFallback', 'Replace', 'Metaspace', 'Fuse', 'Strip'] as const;

/**
 * Returns the function that maps a token to its bytes; the joined bytes of all tokens are the text in UTF-8. Ignores
 * `Strip`, which removes the space at the start of a text: generated text continues a prompt.
 *
 * @throws Error with the name of an unsupported decoder.
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

/** Returns the bytes of a token of a byte-level vocabulary: one per letter. */
function bytesOfLetters(token: string): Uint8Array {
  return Uint8Array.from(token, (letter) => byteOfLetter.get(letter) ?? '?'.codePointAt(0)!);
}

/** Returns the function for tokens of a text vocabulary, where `<0x0A>` is a single byte. */
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

/** Bytes by GPT-2's letters: printable bytes are their own letters, the others are U+0100 and up, in order. */
const byteOfLetter = new Map<string, number>();
for (let byte = 0, others = 0; byte < 256; byte++) {
  const isPrintable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte !== 173);
  byteOfLetter.set(String.fromCodePoint(isPrintable ? byte : 256 + others++), byte);
}
