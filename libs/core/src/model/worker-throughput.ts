/** Measured range: the 10th and the 90th percentile, from fast to slow. */
export interface MeasuredRange {
  fast: number;
  slow: number;
}

/** Recent throughput of a worker, and its remaining work. */
export interface WorkerThroughput {
  /** Milliseconds per unit of cost (`RequestEnvelope.cost`), whatever shared the steps. */
  costMs: MeasuredRange;
  /** Milliseconds per unit of a row's progress: a step, a token. */
  stepMs: MeasuredRange;
  /**
   * Length of its finished outputs, as a fraction of the maximum: a text may end before its `max_tokens`. Absent before
   * the first end.
   */
  share?: MeasuredRange;
  /** Remaining cost of its requests. */
  remainingCost: number;
}
