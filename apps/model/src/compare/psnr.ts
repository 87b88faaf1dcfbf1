/** Peak signal-to-noise ratio of two pictures of 8 bits, in dB; Infinity for the same bytes. */
export function psnr(left: Uint8Array, right: Uint8Array): number {
  let squares = 0;
  for (let at = 0; at < left.length; at++) squares += (left[at]! - right[at]!) ** 2;
  return 10 * Math.log10(255 ** 2 / (squares / left.length));
}
