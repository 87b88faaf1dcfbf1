import type { ImageInfo, Picture } from '../answers.ts';
import { connectionFailed, readBytes, retrying, send } from '../http.ts';
import type { Call } from '../options.ts';

/** What is known of a picture, with the bytes of its url. */
export function fetchPicture<Info extends ImageInfo>(call: Call, image: Info): Promise<Info & Picture> {
  const { url, bytes } = image;
  return retrying(call, async () => {
    const response = await send(call, url);
    const data = await readBytes(call, response);
    const contentType = response.headers.get('content-type') ?? image.content_type;
    // Without a length nobody else notices a body that is cut; with one, a proxy may have made the picture smaller.
    if (data.length < bytes && !response.headers.has('content-length'))
      throw connectionFailed(`GET ${url.replace(/\?.*/, '')} brought ${data.length} of ${bytes} bytes`);
    return { ...image, content_type: contentType, bytes: data.length, data };
  });
}

/** The picture at a path. */
export function fetchInput(call: Call, path: string): Promise<Blob> {
  return retrying(call, async () => {
    const response = await send(call, path);
    return new Blob([await readBytes(call, response)], { type: response.headers.get('content-type') ?? '' });
  });
}
