import { describeValue, type ModelCard } from '@darkroom/core';
import { answersWithoutImages, type Kind, mentionsImages, requestFields, takesImages } from '@darkroom/kinds';
import { isServed, type KnownModel } from '@darkroom/store';
import type { ApiContext } from '../context/context.ts';
import { kindNotFound, modelNotFound, modelOfOtherKind, temporarilyUnavailable } from '../http/api-error.ts';
import { isStoreUnavailable } from '../server/store-guard.ts';

export interface ModelChoice {
  body: unknown;
  /** Model for a body without `model`. */
  defaultModel: string | undefined;
  /** The only kind of model that the route accepts. */
  kind?: string;
  /** Tells whether a model supports what the body needs; such a model is preferred for a body without `model`. */
  canServe?: (card: ModelCard) => boolean;
}

/** Returns the model for a body and its kind. Throws 404 or 503 if there is none. */
export async function chooseModel(context: ApiContext, choice: ModelChoice): Promise<{ card: KnownModel; kind: Kind }> {
  const { models, kinds } = context;
  let chosen = await choose(context, await models.get(), choice);
  // The model may have been published since the list was cached.
  if (chosen.card === undefined) chosen = await choose(context, await models.reload(), choice);
  const { card, id, fitting, isEmpty } = chosen;
  // Expected shortly after a start, so 503 and not 404.
  if (isEmpty) throw temporarilyUnavailable('no_models', 'No worker has published a model yet, try again later.');
  if (fitting.length === 0) throw kindNotFound(choice.kind);
  if (card === undefined) {
    const other = (await models.get()).find((known) => known.id === id);
    throw other === undefined ? modelNotFound(id, fitting) : modelOfOtherKind(other);
  }
  const kind = kinds.ofModel(card);
  if (kind !== undefined) return { card, kind };
  // A worker of a newer version published it.
  const message = `model ${id} has the kind ${describeValue(card.kind)}, which this server does not support.`;
  throw temporarilyUnavailable('kind_unknown', message, 'model');
}

async function choose(
  context: ApiContext,
  cards: readonly KnownModel[],
  { body, defaultModel, kind, canServe }: ModelChoice,
) {
  const fitting = cards.filter((card) => kind === undefined || card.kind === kind);
  const able = ableToRead(body, canServe === undefined ? fitting : fitting.filter(canServe));
  const unnamed = { body, defaultModel, cards, fitting: able.length > 0 ? able : fitting };
  const id = namedModel(body) ?? (await unnamedModel(context, unnamed)) ?? '';
  return { id, fitting, isEmpty: cards.length === 0, card: fitting.find((card) => card.id === id) };
}

/**
 * Returns the models that take the images of a body, if it has any: those that surely do, else those that may. Without
 * images, leaves out models that answer questions about images only.
 */
function ableToRead(body: unknown, cards: readonly KnownModel[]): readonly KnownModel[] {
  if (!mentionsImages(body)) return cards.filter(answersWithoutImages);
  const able = cards.filter((card) => takesImages(card) === true);
  return able.length > 0 ? able : cards.filter((card) => takesImages(card) === undefined);
}

/**
 * Returns `model` of the body; undefined if it is missing or invalid: the schema of the default model's kind rejects it
 * later.
 */
function namedModel(body: unknown): string | undefined {
  const named = typeof body === 'object' && body !== null && 'model' in body ? body.model : undefined;
  return requestFields.model.safeParse(named).data;
}

interface UnnamedChoice extends Pick<ModelChoice, 'body' | 'defaultModel'> {
  cards: readonly KnownModel[];
  /** The cards that the route accepts; of these only the ones that support the body, if any does. */
  fitting: readonly KnownModel[];
}

/**
 * Returns the id of the model for a body without `model`: among the models of the kind whose fields the body has (all
 * models if there are none), the default model, else the first with a worker, else the first.
 */
async function unnamedModel(
  { pools, kinds }: ApiContext,
  { body, defaultModel, cards, fitting }: UnnamedChoice,
): Promise<string | undefined> {
  const kind = kinds.ofBody(body);
  const ofKind = fitting.filter((card) => card.kind === kind?.id);
  const candidates = ofKind.length > 0 ? ofKind : fitting;
  const isDefault = ({ id }: KnownModel): boolean => id === defaultModel;
  // An unpublished default model is a configuration error and must be reported; one of another kind is skipped.
  if (defaultModel !== undefined && (!cards.some(isDefault) || candidates.some(isDefault))) return defaultModel;
  if (candidates.length <= 1) return candidates[0]?.id;
  const served =
    (await firstServed(() => pools.get(), candidates)) ?? (await firstServed(() => pools.reload(), candidates));
  return (served ?? candidates[0])?.id;
}

async function firstServed(
  readPools: ApiContext['pools']['get'],
  candidates: readonly KnownModel[],
): Promise<KnownModel | undefined> {
  try {
    const pools = await readPools();
    return candidates.find(({ id }) => {
      const pool = pools.get(id);
      return pool !== undefined && isServed(pool) && !pool.isPaused;
    });
  } catch (error) {
    // One node of a Redis cluster may be unavailable while the request's node is not.
    if (!isStoreUnavailable(error)) throw error;
    return undefined;
  }
}
