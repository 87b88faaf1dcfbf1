import type { FieldProblem } from '@darkroom/core';
import { ApiError, invalidFields } from '../http/api-error.ts';

/** Their names of our fields, where they differ. */
type TheirNames = Readonly<Record<string, string>> | ((field: string) => string);

/** Does what takes in a body of ours that was made of theirs: what is wrong with it is told in their names. */
export async function inTheirNames<Result>(names: TheirNames, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof ApiError) || error.problems.length === 0) throw error;
    throw invalidFields(error.problems.map((problem) => renamed(problem, names)));
  }
}

function renamed(problem: FieldProblem, names: TheirNames): FieldProblem {
  const { field, message } = problem;
  if (field === undefined) return problem;
  const name = typeof names === 'function' ? names(field) : nameOf(field, names);
  if (name === undefined) return problem;
  const told = message.replace(`${field} have `, `${name} has `).replace(field, name);
  return { ...problem, field: name, message: told.replace('"auto" or "WIDTHxHEIGHT", ', '') };
}

/** What lies in a list of ours may lie elsewhere in theirs. */
function nameOf(field: string, names: Readonly<Record<string, string>>): string | undefined {
  return Object.entries(names).find(([ours]) => `${field}.`.startsWith(`${ours}.`))?.[1];
}
