export const terminalStates = ['succeeded', 'failed', 'canceled', 'expired'] as const;
export type TerminalState = (typeof terminalStates)[number];

/** Where a request is in its life. The first two are open. */
export const requestStates = ['queued', 'running', ...terminalStates] as const;
export type RequestState = (typeof requestStates)[number];

/** True for a state, and for the type of an event, after which nothing follows. */
export function isTerminalState(state: string): state is TerminalState {
  return terminalStates.some((terminal) => terminal === state);
}
