import type { FieldProblem, ModelCard } from '@darkroom/core';
import type { Kind, Kinds } from '@darkroom/kinds';
import { invalidFields } from '../http/api-error.ts';

/** Throws 400 with all problems of a body; problems with fields of another kind name both kinds. */
export function throwInvalid(problems: readonly FieldProblem[], chosen: Parameters<typeof withKind>[1]): never {
  throw invalidFields(problems.map((problem) => withKind(problem, chosen)));
}

/** If an unknown field belongs to another kind of model, returns the problem with a message that names both kinds. */
function withKind(
  problem: FieldProblem,
  { kind, card, kinds }: { kind: Kind; card: Pick<ModelCard, 'id'>; kinds: Kinds },
): FieldProblem {
  const { field, code } = problem;
  if (code !== 'unknown_field' || field === undefined) return problem;
  const owner = kinds.all.find(({ id, bodySchema }) => id !== kind.id && Object.hasOwn(bodySchema.shape, field));
  if (owner === undefined) return problem;
  const message = `${field} is not a field of ${kind.id} models, such as ${card.id}; it is a field of ${owner.id} models`;
  return { ...problem, message };
}
