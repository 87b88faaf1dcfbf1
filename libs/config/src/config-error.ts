import { DarkroomError } from '@darkroom/core';

/** Thrown by `loadConfig` with everything that is wrong, one line each, so that one restart is enough to put it right. */
export class ConfigError extends DarkroomError {
  /** One sentence each: variable, value, what was expected. Passwords in URLs are masked. */
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super({
      code: 'invalid_request',
      op: 'config.load',
      message: `The settings cannot be used:\n${problems.map((problem) => `  - ${problem}`).join('\n')}`,
    });
    this.name = 'ConfigError';
    this.problems = problems;
  }
}
