/** Helpers of the routes that implement other image APIs (fal, Replicate). */
import type { OutputInfo, RequestSnapshot, WebhookRequest, WebhookView } from '@darkroom/core';
import { imageUrl, imageKind, type ImageCard } from '@darkroom/kinds';
import { linkOutput, readOutput } from '@darkroom/store';
import { z } from '@hono/zod-openapi';
import type { ApiContext } from '../context/context.ts';
import { findRequest, requestIdOf } from '../follow/find-request.ts';
import type { ApiCall } from '../http/api-env.ts';
import { invalidField, requestGone, requestNotFound } from '../http/api-error.ts';
import { absoluteUrl } from '../http/public-url.ts';
import { type Submission, type SubmittedRequest, submitRequest } from '../submit/submit-request.ts';
import { withClientFieldNames } from './client-field-names.ts';
import { imageLinks } from '../auth/image-links.ts';

interface SubmitImageOptions {
  names: Readonly<Record<string, string>>;
  refine: Submission['refine'];
  /** Format of webhook deliveries, and the events that trigger them. */
  webhook: { view: WebhookView['name']; events?: WebhookRequest['events'] };
}

/** Submits a body that was converted from another API. Errors use that API's field `names`. */
export function submitImage(
  c: ApiCall,
  context: ApiContext,
  body: object,
  { names, refine, webhook: { view, events } }: SubmitImageOptions,
): Promise<SubmittedRequest> {
  const webhook = { ...(events && { events }), view: { name: view, root: absoluteUrl(c, '/') } };
  return withClientFieldNames(names, () =>
    submitRequest(c, context, { body, kind: imageKind.id, webhook, ...(refine && { refine }) }),
  );
}

/**
 * Returns a hook that checks the field by which other APIs turn a safety checker on or off. Here the operator decides
 * that per model, so the hook rejects values that contradict the model.
 *
 * @param given `withChecker`: the value that means that the checker is on.
 */
export function checkSafetyCheckerField(
  field: string,
  given: { value: boolean | undefined; withChecker: boolean },
): NonNullable<Submission['refine']> {
  return (input, card) => {
    const hasChecker = (card as ImageCard).safetyChecker !== undefined;
    const expected = hasChecker === given.withChecker;
    if (given.value === undefined || given.value === expected) return input;
    const reason = hasChecker ? 'the safety checker of this model is always used' : 'this model has no safety checker';
    throw invalidField(field, given.value, `${expected}: ${reason}`);
  };
}

/** Schema of the field that `checkSafetyCheckerField` checks. */
export const safetyCheckerField = z
  .boolean({ error: 'true or false' })
  .optional()
  .openapi({ description: 'Must match the model: `safety_checker` in /v1/models.' });

/** Finds the request in the path. Throws like `findRequest`, and 404 if it is no image request or of another model. */
export async function findImageRequest(
  c: ApiCall,
  { withStore }: ApiContext,
  model?: string,
): Promise<RequestSnapshot> {
  const id = requestIdOf(c);
  const request = await findRequest(withStore, id, c.get('owner'));
  if (request.kind !== imageKind.id || request.model !== (model ?? request.model)) throw requestNotFound(id);
  return request;
}

/** Lifetime of links to the blob store: the default lifetime of results. */
const linkSeconds = 3600;

interface OpenImage {
  id: string;
  output: OutputInfo;
  fromMs: number;
  expiresAtMs?: number | undefined;
  onlyHttps?: boolean;
}

/**
 * Returns a URL that opens an image without a key, because the clients of other APIs fetch images without one. Clients
 * that ignore http URLs (`onlyHttps`) get a link to the blob store if it has public links, and a `data:` URL otherwise.
 *
 * @param fromMs as in `signLinks`, like `expiresAtMs`.
 */
export async function openImageUrl(
  c: ApiCall,
  { withStore }: ApiContext,
  { id, output, fromMs, expiresAtMs, onlyHttps = false }: OpenImage,
): Promise<string> {
  const linkOf = await imageLinks(withStore, { owner: c.get('owner'), fromMs, expiresAtMs });
  const url = absoluteUrl(c, linkOf(imageUrl(id, output.index)));
  if (!onlyHttps || url.startsWith('https:')) return url;
  const { index } = output;
  const link = await withStore((store) => linkOutput(store, id, { index, seconds: linkSeconds }));
  if (link !== undefined) return link;
  const stored = await withStore((store) => readOutput(store, id, index));
  if (stored === undefined) throw requestGone(id);
  return `data:${output.contentType};base64,${stored.data.toString('base64')}`;
}
