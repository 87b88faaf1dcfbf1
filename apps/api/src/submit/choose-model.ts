import { describeValue } from '@darkroom/core';
import { type Kind, requestFields } from '@darkroom/kinds';
import type { KnownModel } from '@darkroom/store';
import type { ApiContext } from '../context.ts';
import { kindNotFound, modelNotFound, notNow } from '../http/api-error.ts';

export interface ModelChoice {
  body: unknown;
  /** The model of a body that names none, in place of the first. */
  defaultModel: string | undefined;
  /** The only kind that is wanted. */
  kind?: string;
}

/** The model that a body asks for, and what the door knows of its kind. Throws 404 or 503 when there is none. */
export async function chooseModel(
  { models, kinds }: ApiContext,
  choice: ModelChoice,
): Promise<{ card: KnownModel; kind: Kind }> {
  let chosen = choose(await models.get(), choice);
  // It may have come this moment.
  if (chosen.card === undefined) chosen = choose(await models.reload(), choice);
  const { card, id, fitting, isEmpty } = chosen;
  // A matter of time on a system that has just been started.
  if (isEmpty) throw notNow('no_models', 'No worker has brought a model yet, try again later.');
  if (fitting.length === 0) throw kindNotFound(choice.kind);
  if (card === undefined) throw modelNotFound(id, fitting);
  const kind = kinds.ofModel(card);
  if (kind !== undefined) return { card, kind };
  // A worker of a newer version has brought it.
  const message = `model ${id} is of the kind ${describeValue(card.kind)}, which this server does not know.`;
  throw notNow('kind_unknown', message, 'model');
}

function choose(cards: readonly KnownModel[], { body, defaultModel, kind: only }: ModelChoice) {
  const fitting = cards.filter(({ kind }) => only === undefined || kind === only);
  // A server's default may be of another kind than the route.
  const isFitting = !cards.some(({ id }) => id === defaultModel) || fitting.some(({ id }) => id === defaultModel);
  const id = namedModel(body) ?? (isFitting ? defaultModel : undefined) ?? fitting[0]?.id ?? '';
  return { id, fitting, isEmpty: cards.length === 0, card: fitting.find((card) => card.id === id) };
}

/** Undefined also for what is no name: the schema of the default model's kind says what is wrong with it. */
function namedModel(body: unknown): string | undefined {
  const named = typeof body === 'object' && body !== null && 'model' in body ? body.model : undefined;
  return requestFields.model.safeParse(named).data;
}
