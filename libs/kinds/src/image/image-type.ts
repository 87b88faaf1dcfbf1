/** Returns the type of an image by its first bytes; undefined for any other file. */
export function imageTypeOf(data: Uint8Array): 'image/png' | 'image/jpeg' | 'image/webp' | undefined {
  const prefix = Buffer.from(data.buffer, data.byteOffset, Math.min(data.byteLength, 12)).toString('latin1');
  if (prefix.startsWith('\x89PNG\r\n\x1a\n')) return 'image/png';
  if (prefix.startsWith('\xff\xd8\xff')) return 'image/jpeg';
  return prefix.startsWith('RIFF') && prefix.slice(8, 12) === 'WEBP' ? 'image/webp' : undefined;
}
