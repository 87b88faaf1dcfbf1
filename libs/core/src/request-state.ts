/** Where a request is in its life. The first two are open, the other four are terminal. */
export const requestStates = ['queued', 'running', 'succeeded', 'failed', 'canceled', 'expired'] as const;
export type RequestState = (typeof requestStates)[number];

export const terminalStates = ['succeeded', 'failed', 'canceled', 'expired'] as const;
export type TerminalState = (typeof terminalStates)[number];

/** Legal moves. `running → queued` is a lost or stopped worker's request on its way to another one. */
export const requestTransitions: Readonly<Record<RequestState, readonly RequestState[]>> = {
  queued: ['running', 'canceled', 'expired', 'failed'],
  running: ['queued', 'succeeded', 'failed', 'canceled', 'expired'],
  succeeded: [],
  failed: [],
  canceled: [],
  expired: [],
};

/** True when no further event will follow for a request in this state. */
export function isTerminalState(state: RequestState): state is TerminalState {
  return requestTransitions[state].length === 0;
}
