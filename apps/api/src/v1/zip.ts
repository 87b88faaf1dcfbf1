import { pipeline } from 'node:stream/promises';
import { modelOfRequestId, type OutputInfo } from '@darkroom/core';
import { type ListedRequest, readListed, readOutput, whyMissing } from '@darkroom/store';
import { z } from '@hono/zod-openapi';
import { makeZip, predictLength } from 'client-zip';
import type { ApiContext } from '../context/context.ts';
import { present } from '../follow/find-request.ts';
import type { ApiCall } from '../http/api-env.ts';
import { ApiError, checkField, invalidField, requestGone } from '../http/api-error.ts';
import { describeErrorAnswer, requestErrors, type Route } from '../openapi/api-route.ts';

const maxIds = 100;
const idsExpected = `1 to ${maxIds} request ids, separated by commas`;
const idsField = z
  .string()
  .transform((text) => [...new Set(text.split(','))])
  .pipe(z.array(z.string().refine((id) => modelOfRequestId(id) !== undefined)).max(maxIds));

const endings: Readonly<Record<string, string>> = { 'image/png': 'png', 'image/jpeg': 'jpg', 'image/webp': 'webp' };

export const zipRoute: Route = {
  method: 'get',
  path: '/v1/predict/zip',
  operationId: 'downloadImages',
  tag: 'Images',
  summary: 'Download the images of several requests',
  description:
    'A ZIP file of all finished images, also of requests that still run; their names are `<request id>-<index>` with an ending. Images are stored as they are, without compression, and streamed one after another. Requests that are not stored any more are left out.',
  request: {
    query: z.object({
      ids: z
        .string()
        .min(1)
        .openapi({ description: `${idsExpected}.` }),
    }),
  },
  responses: {
    ...requestErrors,
    200: {
      description: 'The file.',
      content: { 'application/zip': { schema: { type: 'string', format: 'binary' } } },
    },
    400: describeErrorAnswer('`ids` is missing or invalid.', invalidField('ids', 'all', idsExpected)),
    404: describeErrorAnswer('None of the requests exists, or none has a finished image.', noImages()),
  },
  async handle(c, context) {
    const ids = checkField(idsField, 'ids', c.req.query('ids'), idsExpected);
    const requests = await findListed(context, ids, c.get('owner'));
    const images = requests.flatMap(({ id, endedAtMs, outputs }) =>
      outputs.filter(({ contentType }) => contentType in endings).map((output) => ({ id, endedAtMs, output })),
    );
    if (images.length === 0) throw noImages();
    return streamZip(c, context, images);
  },
};

interface FinishedImage extends Pick<ListedRequest, 'id' | 'endedAtMs'> {
  output: OutputInfo;
}

/** Returns the requests that are stored. @throws ApiError of the first id if there are none. */
async function findListed(
  { withStore }: ApiContext,
  ids: readonly string[],
  owner: string,
): Promise<readonly ListedRequest[]> {
  const listed = await Promise.all(ids.map((id) => withStore((store) => readListed(store, id, owner))));
  const found = listed.filter((request) => request !== undefined);
  const [first = ''] = ids;
  return found.length > 0 ? found : present(first, await withStore((store) => whyMissing(store, first, owner)));
}

/** Streams the file. If an image cannot be read any more, the connection breaks off: the head has been sent. */
function streamZip(c: ApiCall, { withStore, clock, log }: ApiContext, images: readonly FinishedImage[]): Response {
  const entryOf = ({ id, endedAtMs = clock.now(), output }: FinishedImage) => ({
    name: `${id}-${output.index}.${endings[output.contentType]}`,
    size: output.bytes,
    lastModified: new Date(endedAtMs),
  });
  async function* read() {
    for (const image of images) {
      const { id, output } = image;
      const stored = await withStore((store) => readOutput(store, id, output.index));
      // Another attempt may have written an image of another size.
      if (stored?.data.length !== output.bytes) throw requestGone(id);
      yield { ...entryOf(image), input: stored.data };
    }
  }
  const headers = {
    'Content-Type': 'application/zip',
    'Content-Length': String(predictLength(images.map(entryOf))),
    'Content-Disposition': 'attachment; filename="darkroom-images.zip"',
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
  };
  if (c.req.method === 'HEAD') return c.body(null, 200, headers);
  const { outgoing } = c.env ?? {};
  // Tests call the app without a server.
  if (outgoing === undefined) return c.body(makeZip(read()), 200, headers);
  c.env.writeBody = async () => {
    try {
      await pipeline(makeZip(read()), outgoing);
    } catch (error) {
      if (!isDisconnect(error)) log.warn({ error: String(error) }, 'download of images broke off');
    }
  };
  return c.body(null, 200, headers);
}

function isDisconnect(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ERR_STREAM_PREMATURE_CLOSE';
}

function noImages(): ApiError {
  return new ApiError(404, 'image_not_found', 'None of these requests has a finished image.');
}
