// Counts of passed and failed tests. Every test command prints them in its last line, which CI reads.
import { SetupError } from '../start/say.mjs';
import { runAndRead } from './run-and-read.mjs';

/** Runs tests and returns their counts. A run that throws counts as one failure. */
export async function countOf(run) {
  try {
    return await run();
  } catch (error) {
    console.error(error instanceof SetupError ? `darkroom: ${error.message}` : error);
    return { passed: 0, failed: 1 };
  }
}

/** Runs a test command. Returns its counts and output. Counts one failure if it fails without reporting one. */
export async function countOfCommand(file, args, options) {
  const { code, output } = await runAndRead(file, args, options);
  const { passed, failed } = lastCount(output) ?? { passed: 0, failed: 0 };
  return { passed, failed: code !== 0 && failed === 0 ? 1 : failed, output };
}

/** Parses the last line of counts in the output; undefined if there is none. */
export function lastCount(output) {
  const counts = [...output.matchAll(/^(?<passed>\d+) passed, (?<failed>\d+) failed$/gm)].at(-1)?.groups;
  return counts && { passed: Number(counts.passed), failed: Number(counts.failed) };
}

/** Prints the counts as the last line and sets the exit status. No tests at all is a failure. */
export function announce({ passed, failed }) {
  console.log(`${passed} passed, ${failed} failed`);
  process.exitCode = failed > 0 || passed === 0 ? 1 : 0;
}
