import type { ImageInfo, Image } from './answers.ts';
import { connectionError, readBytes, retrying, send } from './http.ts';
import type { Call } from './options.ts';

/** Returns an image with the bytes from its url. */
export function fetchImage<Info extends ImageInfo>(call: Call, image: Info): Promise<Info & Image> {
  const { url, bytes } = image;
  return retrying(call, async () => {
    const response = await send(call, url);
    const data = await readBytes(call, response);
    const contentType = response.headers.get('content-type') ?? image.content_type;
    // Without Content-Length, fetch does not detect a truncated body. With it, a proxy may have recompressed the
    // image.
    if (data.length < bytes && !response.headers.has('content-length'))
      throw connectionError(`GET ${url.replace(/\?.*/, '')} returned ${data.length} of ${bytes} bytes`);
    return { ...image, content_type: contentType, bytes: data.length, data };
  });
}

/** Fetches the file at a path. */
export function fetchFile(call: Call, path: string): Promise<Blob> {
  return retrying(call, async () => {
    const response = await send(call, path);
    return new Blob([await readBytes(call, response)], { type: response.headers.get('content-type') ?? '' });
  });
}
