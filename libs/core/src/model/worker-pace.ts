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
  /**
   * How far its outputs came in the end, of as far as they might have come: a text may end before its `max_tokens`. Absent
   * before the first end.
   */
  share?: MeasuredRange;
  /** Cost of what is left of the requests it has. */
  remainingCost: number;
}
