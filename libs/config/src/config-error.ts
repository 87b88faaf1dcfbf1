import { DarkroomError } from '@darkroom/core';

/** Thrown by `loadConfig` with all problems, one per line, so that one restart can fix them all. */
export class ConfigError extends DarkroomError {
  /** One sentence each: variable, value, what was expected. Passwords in URLs are masked. */
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    const list = problems.map((problem) => `  - ${problem}`).join('\n');
    super('invalid_request', 'config.load', `The settings cannot be used:\n${list}`);
    this.name = 'ConfigError';
    this.problems = problems;
  }
}
