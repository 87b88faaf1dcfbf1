/** The next bytes of a body; undefined at its end. Rejects when it breaks, or when nothing comes for `ms` milliseconds. */
export function readWithin<Bytes extends Uint8Array>(
  reader: ReadableStreamDefaultReader<Bytes>,
  ms: number,
): Promise<Bytes | undefined> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`nothing came for ${ms} ms`)), ms);
    reader
      .read()
      .then(({ value }) => resolve(value), reject)
      .finally(() => clearTimeout(timer));
  });
}
