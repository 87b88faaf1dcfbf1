/** Measured values from the fast to the slow end of what is usual: the 10th and the 90th percentile. */
export interface MeasuredRange {
  fast: number;
  slow: number;
}

/** How fast a worker has been of late, and what it has left. */
export interface WorkerPace {
  /** Milliseconds for one unit of cost (`RequestEnvelope.cost`), whatever shared the steps. */
  costMs: MeasuredRange;
  /** Milliseconds for a row to get one further, as its progress is counted: a step, a token. */
  stepMs: MeasuredRange;
  /** Cost of what is left of the requests it has. */
  remainingCost: number;
}
