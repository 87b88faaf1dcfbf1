/** The type of a picture's file by its first bytes, of those that are served; undefined for anything else. */
export function pictureTypeOf(data: Uint8Array): string | undefined {
  const begins = Buffer.from(data.subarray(0, 12)).toString('latin1');
  if (begins.startsWith('\x89PNG')) return 'image/png';
  if (begins.startsWith('\xff\xd8')) return 'image/jpeg';
  return /^RIFF.{4}WEBP/s.test(begins) ? 'image/webp' : undefined;
}
