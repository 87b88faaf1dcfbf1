/** What routes have in common that speak as another API of pictures. */
import type { OutputInfo, RequestStatus } from '@darkroom/core';
import { imageUrl, picture, type PictureCard } from '@darkroom/kinds';
import { linkOutput, readOutput } from '@darkroom/store';
import { z } from '@hono/zod-openapi';
import type { ApiContext } from '../context.ts';
import { findRequest, requestIdOf } from '../follow/find-request.ts';
import type { ApiCall } from '../http/api-env.ts';
import { invalidField, requestGone, requestNotFound } from '../http/api-error.ts';
import { absoluteUrl, pictureLinks } from '../http/urls.ts';
import { type Submission, type SubmittedRequest, submitRequest } from '../submit/submit-request.ts';
import { inTheirNames } from './their-names.ts';

/** Takes in a body of ours that was made of theirs; what is wrong with it is told in their `names`. */
export function submitPicture(
  c: ApiCall,
  context: ApiContext,
  body: object,
  { names, refine }: { names: Readonly<Record<string, string>>; refine: Submission['refine'] },
): Promise<SubmittedRequest> {
  return inTheirNames(names, () => submitRequest(c, context, { body, kind: picture.id, ...(refine && { refine }) }));
}

/**
 * For a field by which others turn a safety checker on or off. Here the operator has decided that, model by model: a client may say
 * what it is, and is refused if it says otherwise.
 *
 * @param given `withChecker`: what the field is where there is one, and otherwise it is the opposite.
 */
export function agreeOnChecker(
  field: string,
  given: { value: boolean | undefined; withChecker: boolean },
): NonNullable<Submission['refine']> {
  return (input, card) => {
    const hasChecker = (card as PictureCard).safetyChecker !== undefined;
    const expected = hasChecker === given.withChecker;
    if (given.value === undefined || given.value === expected) return input;
    const reason = hasChecker ? 'the safety checker of this model is always used' : 'there is no safety checker here';
    throw invalidField(field, given.value, `${expected}: ${reason}`);
  };
}

/** A field of `agreeOnChecker`. */
export const checkerField = z
  .boolean({ error: 'true or false' })
  .optional()
  .openapi({ description: 'What the server does with this model anyway: `safety_checker` in /v1/models.' });

/** The request that a path names. Throws as `findRequest`, and 404 for one of anything but pictures or of another model. */
export async function findPicture(c: ApiCall, { askStore }: ApiContext, model?: string): Promise<RequestStatus> {
  const id = requestIdOf(c);
  const request = await findRequest(askStore, id, c.get('owner'));
  if (request.kind !== picture.id || request.model !== (model ?? request.model)) throw requestNotFound(id);
  return request;
}

/** Of links to what keeps the bytes: as long as results are there by default. */
const linkSeconds = 3600;

/**
 * A URL that opens a picture for whoever holds it, as the clients of other APIs fetch pictures without a key. Some of them make nothing
 * of http URLs (`onlyHttps`): where we are reached by one, it is a link to what keeps the picture, where they reach that, or the
 * picture itself as a `data:` URL.
 *
 * @param fromMs as of `signLinks`.
 */
export async function openPictureUrl(
  c: ApiCall,
  { askStore }: ApiContext,
  { id, output, fromMs, onlyHttps = false }: { id: string; output: OutputInfo; fromMs: number; onlyHttps?: boolean },
): Promise<string> {
  const linkOf = await pictureLinks(askStore, { owner: c.get('owner'), fromMs });
  const url = absoluteUrl(c, linkOf(imageUrl(id, output.index)));
  if (!onlyHttps || url.startsWith('https:')) return url;
  const { index } = output;
  const link = await askStore((store) => linkOutput(store, id, { index, seconds: linkSeconds }));
  if (link !== undefined) return link;
  const stored = await askStore((store) => readOutput(store, id, index));
  if (stored === undefined) throw requestGone(id);
  return `data:${output.contentType};base64,${stored.data.toString('base64')}`;
}

const barWidth = 20;

/** A line of a log as diffusers prints it (tqdm's), which clients read progress from: ` 42%|████████            | 5/12`. */
export function progressBar(step: number, totalSteps: number): string {
  const share = totalSteps > 0 ? Math.min(1, step / totalSteps) : 0;
  const percent = String(Math.floor(share * 100)).padStart(3);
  return `${percent}%|${'█'.repeat(Math.floor(share * barWidth)).padEnd(barWidth)}| ${step}/${totalSteps}`;
}

export function secondsBetween(fromMs: number | undefined, toMs: number | undefined): number | undefined {
  return fromMs === undefined || toMs === undefined ? undefined : (toMs - fromMs) / 1000;
}
