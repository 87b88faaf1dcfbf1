import type { FieldProblem } from '@darkroom/core';
import { ApiError, invalidFields } from '../http/api-error.ts';

/** Does what takes in a body of ours that was made of theirs: what is wrong with it is told in their `names` of our fields. */
export async function inTheirNames<Result>(
  names: Readonly<Record<string, string>>,
  work: () => Promise<Result>,
): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof ApiError) || error.problems.length === 0) throw error;
    throw invalidFields(error.problems.map((problem) => renamed(problem, names)));
  }
}

function renamed(problem: FieldProblem, names: Readonly<Record<string, string>>): FieldProblem {
  const { field, message } = problem;
  // What lies in a list of ours may lie elsewhere in theirs.
  const [, name] = Object.entries(names).find(([ours]) => `${field}.`.startsWith(`${ours}.`)) ?? [];
  if (field === undefined || name === undefined) return problem;
  const told = message.replace(`${field} have `, `${name} has `).replace(field, name);
  return { ...problem, field: name, message: told.replace('"auto" or "WIDTHxHEIGHT", ', '') };
}
