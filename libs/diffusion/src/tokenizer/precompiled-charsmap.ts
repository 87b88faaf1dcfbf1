import { itemAt } from '@darkroom/core';
/**
 * SentencePiece's table of replacements (`precompiled_charsmap`), which T5 normalizes texts with.
 * `@huggingface/tokenizers` uses Unicode's NFKC instead, which differs: for example, the table preserves the joiners of
 * emoji.
 * Source: SentencePiece `normalizer.cc`; the trie is that of Darts-clone; segmentation as in tokenizers' `Precompiled`.
 */

/** Maximum size, in UTF-8 bytes, of a grapheme cluster that is looked up as one. */
const maxClusterBytes = 5;
const decoder = new TextDecoder();
const encoder = new TextEncoder();

/**
 * Creates the normalizer of a table.
 *
 * @param charsmap in base64: the length of the trie in bytes (uint32, little-endian), the trie, then the replacements,
 * each terminated by a 0.
 * @throws RangeError if it is not such a table.
 */
export function createCharsmapNormalizer(charsmap: string): (text: string) => string {
  const bytes = Buffer.from(charsmap, 'base64');
  const trieLength = bytes.length < 4 ? -1 : bytes.readUInt32LE(0);
  if (trieLength < 4 || trieLength % 4 !== 0 || 4 + trieLength > bytes.length) {
    throw new RangeError('precompiled_charsmap is not a table of SentencePiece');
  }
  const trie = Uint32Array.from({ length: trieLength / 4 }, (_, at) => bytes.readUInt32LE(4 + 4 * at));
  const replacements = bytes.subarray(4 + trieLength);
  const segmenter = new Intl.Segmenter('und', { granularity: 'grapheme' });

  function replacementOf(text: string): string | undefined {
    const start = findShortestKey(trie, encoder.encode(text));
    if (start === undefined) return undefined;
    const end = replacements.indexOf(0, start);
    return decoder.decode(replacements.subarray(start, end === -1 ? undefined : end));
  }

  return (text) => {
    let normalized = '';
    for (const { segment } of segmenter.segment(text)) {
      const replacement = Buffer.byteLength(segment) <= maxClusterBytes ? replacementOf(segment) : undefined;
      normalized += replacement ?? Array.from(segment, (character) => replacementOf(character) ?? character).join('');
    }
    return normalized;
  };
}

/**
 * Returns the offset of the replacement for the shortest key that is a prefix of the bytes. SentencePiece takes the
 * longest; transformers, whose tokenizers models are used with, takes the shortest.
 */
function findShortestKey(trie: Uint32Array, bytes: Uint8Array): number | undefined {
  let node = offsetOf(itemAt(trie, 0));
  for (const byte of bytes) {
    if (byte === 0) return undefined;
    node ^= byte;
    const unit = trie[node] ?? 0;
    // The label, and the bit that marks a value, which no label has.
    if ((unit & 0x800000ff) !== byte) return undefined;
    node ^= offsetOf(unit);
    if ((unit & 0x100) !== 0) return (trie[node] ?? 0) & 0x7fffffff;
  }
  return undefined;
}

/** Returns the distance from a node to its children, in units of the trie. */
function offsetOf(unit: number): number {
  return (unit >>> 10) << ((unit & 0x200) >>> 6);
}
