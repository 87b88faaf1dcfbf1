// How many tests passed and failed: every test command says so in its last line, which CI reads.
import { SetupError } from '../start/say.mjs';
import { runAndRead } from './run-and-read.mjs';

/** What a run of tests counts; one that could not begin is one failure. */
export async function countOf(run) {
  try {
    return await run();
  } catch (error) {
    console.error(error instanceof SetupError ? `darkroom: ${error.message}` : error);
    return { passed: 0, failed: 1 };
  }
}

/** What a test command counts, and what it wrote. One that fails without a failure of its own, or does not say, is one more failure. */
export async function countOfCommand(file, args, options) {
  const { code, output } = await runAndRead(file, args, options);
  const { passed, failed } = lastCount(output) ?? { passed: 0, failed: 0 };
  return { passed, failed: code !== 0 && failed === 0 ? 1 : failed, output };
}

/** What the last line of a test command's output says; undefined when there is none. */
export function lastCount(output) {
  const counts = [...output.matchAll(/^(?<passed>\d+) passed, (?<failed>\d+) failed$/gm)].at(-1)?.groups;
  return counts && { passed: Number(counts.passed), failed: Number(counts.failed) };
}

/** Prints the last line and sets the exit status. No test at all is a failure. */
export function announce({ passed, failed }) {
  console.log(`${passed} passed, ${failed} failed`);
  process.exitCode = failed > 0 || passed === 0 ? 1 : 0;
}
