/** A string, or one of the three bare words that Python's json writes and JSON does not have. */
const STRING_OR_BARE_NUMBER = /"(?:[^"\\]|\\.)*"|-?\bInfinity\b|\bNaN\b/g;

/**
 * Parses JSON as Python writes it. diffusers saves a DPM-Solver config with `"lambda_min_clipped": -Infinity`, which
 * `JSON.parse` refuses.
 *
 * @returns the value; infinities as numbers, NaN as null.
 * @throws SyntaxError if the text is otherwise not JSON.
 */
export function parsePythonJson(text: string): unknown {
  return JSON.parse(
    text.replace(STRING_OR_BARE_NUMBER, (match) => {
      if (match.startsWith('"')) return match;
      // JSON.parse reads a number too large for a double as infinity.
      return match === 'NaN' ? 'null' : match.replace('Infinity', '1e999');
    }),
  );
}
