/** Range of bytes, both ends included. */
export interface ByteRange {
  first: number;
  last: number;
}

/** `full`: no range was requested, or one that servers may ignore (several ranges, other units, bad syntax). */
export type ByteRangeResult = { status: 'full' } | { status: 'unsatisfiable' } | ({ status: 'partial' } & ByteRange);

/** `bytes=0-99`, `bytes=100-` and `bytes=-100`. */
const rangePattern = /^bytes=(?:(?<first>\d{1,15})-(?<last>\d{1,15})?|-(?<suffix>\d{1,15}))$/;

/**
 * Returns the part of a file that a `Range` header selects.
 * Source: RFC 9110, section 14.
 *
 * @param length bytes of the file.
 */
export function parseByteRange(header: string | undefined, length: number): ByteRangeResult {
  const { first, last, suffix } = rangePattern.exec(header?.trim() ?? '')?.groups ?? {};
  if (suffix !== undefined) {
    if (Number(suffix) === 0 || length === 0) return { status: 'unsatisfiable' };
    return { status: 'partial', first: Math.max(0, length - Number(suffix)), last: length - 1 };
  }
  if (first === undefined || (last !== undefined && Number(last) < Number(first))) return { status: 'full' };
  if (Number(first) >= length) return { status: 'unsatisfiable' };
  return { status: 'partial', first: Number(first), last: Math.min(Number(last ?? length - 1), length - 1) };
}
