export const terminalStates = ['succeeded', 'failed', 'canceled', 'expired'] as const;
export type TerminalState = (typeof terminalStates)[number];

/** States of a request. The first two are open. */
export const requestStates = ['queued', 'running', ...terminalStates] as const;
export type RequestState = (typeof requestStates)[number];

const terminal: ReadonlySet<string> = new Set(terminalStates);

/** Returns whether a state, or the type of an event, is terminal. */
export function isTerminalState(state: string): state is TerminalState {
  return terminal.has(state);
}
