/** What all processes of a run are told. */

/** How long a request can be asked for after its end: RESULT_TTL_S, short, so that most of what a run leaves goes while it is under way. */
export const keptMs = 120_000;
/** What is not here has its default. */
export const settings = {
  REDIS_PREFIX: 'chaos',
  RESULT_TTL_S: `${keptMs / 1000}`,
  // Each kill costs all that its worker had an attempt, so that with three of them an end would say little.
  MAX_ATTEMPTS: '30',
  LEAK_SWEEP_INTERVAL_S: '5',
  WEBHOOK_ALLOW_PRIVATE: 'true',
  METRICS_PORT: '0',
};
