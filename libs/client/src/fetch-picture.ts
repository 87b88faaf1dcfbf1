import type { ClientContext } from './client-context.ts';
import { readBytes } from './read-body.ts';
import { connectionFailed, send } from './send.ts';
import type { Picture } from './picture.ts';
import type { ImageInfo } from './request-view.ts';
import { retrying } from './retrying.ts';

/** The picture with its bytes, from its url. */
export async function fetchPicture(
  context: ClientContext,
  image: ImageInfo,
  signal: AbortSignal | undefined,
): Promise<Picture> {
  const { index, url, seed, width, height, bytes } = image;
  return retrying(context, signal, async () => {
    const response = await send(context, url, { signal });
    const data = await readBytes(context, response, signal);
    const contentType = response.headers.get('content-type') ?? image.content_type;
    // Without a length nobody else notices a body that is cut; with one, a proxy may have made the picture smaller.
    if (data.length < bytes && !response.headers.has('content-length'))
      throw connectionFailed(`GET ${url} brought ${data.length} of ${bytes} bytes`, undefined);
    return { index, url, seed, width, height, content_type: contentType, bytes: data.length, data };
  });
}
