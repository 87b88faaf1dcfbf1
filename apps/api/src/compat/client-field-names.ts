import type { FieldProblem } from '@darkroom/core';
import { ApiError, invalidFields } from '../http/api-error.ts';

/** The client's names of our fields, where they differ. */
type ClientFieldNames = Readonly<Record<string, string>> | ((field: string) => string);

/** Runs `work` on a body that was converted from the client's. Errors that it throws get the client's field names. */
export async function withClientFieldNames<Result>(
  names: ClientFieldNames,
  work: () => Promise<Result>,
): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof ApiError) || error.problems.length === 0) throw error;
    throw invalidFields(error.problems.map((problem) => renameField(problem, names)));
  }
}

function renameField(problem: FieldProblem, names: ClientFieldNames): FieldProblem {
  const { field, message } = problem;
  if (field === undefined) return problem;
  const name = typeof names === 'function' ? names(field) : clientNameOf(field, names);
  if (name === undefined) return problem;
  const withName = message.replace(`${field} have `, `${name} has `).replace(field, name);
  return { ...problem, field: name, message: withName.replace('"auto" or "WIDTHxHEIGHT", ', '') };
}

/** Returns the client's name of a field. Nested fields get the name of the outer field: positions may differ. */
function clientNameOf(field: string, names: Readonly<Record<string, string>>): string | undefined {
  return Object.entries(names).find(([ours]) => `${field}.`.startsWith(`${ours}.`))?.[1];
}
