/** Settings of all processes of a run. */

/** RESULT_TTL_S, ms. Short, so that most requests expire during the run. */
export const resultTtlMs = 120_000;
/** Settings that differ from their defaults. */
export const settings = {
  REDIS_PREFIX: 'chaos',
  RESULT_TTL_S: `${resultTtlMs / 1000}`,
  // Each kill costs every request of its worker an attempt: with the default of 3, many requests would fail.
  MAX_ATTEMPTS: '30',
  WEBHOOK_ALLOW_PRIVATE: 'true',
  METRICS_PORT: '0',
};
