/** Runs actions on the real scripts one after the other, resends those that may be resent, and checks the replies. */
import { replyOf } from './compare.ts';
import { expectSame } from './differences.ts';
import { planOf, send, sendAgain, type Sent, type World } from './drive.ts';
import { describeAction } from './explore.ts';
import { type Call, type History, addOutcome } from './history.ts';
import { apply } from './model.ts';
import type { Action, State } from './state.ts';
import { requestIds } from './world.ts';

export interface SentAction {
  action: Action;
  sent: Sent | undefined;
  expected: unknown[];
  /** Resent at once, byte for byte: its reply was lost. */
  again: Sent | undefined;
  /** The worker's previous batch of writes, resent: it was in flight for long. */
  late: Sent | undefined;
}

/** Sends the commands of all actions without awaiting the replies. */
export function sendActions(world: World, from: State, actions: readonly Action[]) {
  let state = from;
  let { history } = world;
  const taken: SentAction[] = [];
  const { deliveries } = history;
  for (const action of actions) {
    const here = { ...world, history };
    const outcome = apply(state, action);
    const sent = send(here, state, action);
    const mayBeResent = ['admit', 'dispatch', 'write'].includes(action.do);
    const again = sent && mayBeResent ? sendAgain(here, sent.call) : undefined;
    const earlier = action.do === 'write' ? history.writes[history.workers[action.worker]!]!.last : undefined;
    const late = earlier && sendAgain(here, earlier);
    taken.push({ action, sent, expected: outcome.reply, again, late });
    history = addOutcome(sent ? recordCall(history, action, sent.call) : history, outcome);
    state = outcome.state;
  }
  return {
    state,
    history,
    taken,
    deliveries: async () => [...deliveries, ...(await newDeliveries(taken, world.history))],
  };
}

async function newDeliveries(actions: readonly SentAction[], { workers }: History): Promise<History['deliveries']> {
  const found: History['deliveries'][number][] = [];
  for (const { action, sent } of actions) {
    if (action.do !== 'dispatch' || sent === undefined) continue;
    const reply = (await sent.reply) as [status: string, token: string][];
    const planned = action.leases.flatMap(({ worker, requests }) => requests.map((request) => ({ worker, request })));
    for (const [index, [status, token]] of reply.entries()) {
      const { worker, request } = planned[index]!;
      const isNew = status === 'leased' && action.own?.includes(request) !== true;
      if (isNew) found.push({ id: requestIds[request]!, token, place: workers[worker]! });
    }
  }
  return found;
}

/** Records a command in the history, so that it can be resent. */
function recordCall(history: History, action: Action, call: Call): History {
  if (action.do === 'admit')
    return { ...history, admissions: new Map([...history.admissions, [action.request, call]]) };
  if (action.do === 'dispatch') {
    return { ...history, dispatches: new Map([...history.dispatches, [planOf(history, action), call]]) };
  }
  if (action.do !== 'write' && action.do !== 'write-stale') return history;
  const place = history.workers[action.worker]!;
  const writes = history.writes.map((each, index) => (index === place ? { last: call, batch: each.batch + 1 } : each));
  return { ...history, writes };
}

export async function checkReplies(
  { action, sent, expected, again, late }: SentAction,
  { history: { workers, deliveries } }: World,
  differences: string[],
): Promise<void> {
  const reply = await sent?.reply.catch(String);
  const first = sent ? replyOf(action, reply, workers) : [];
  expectSame(differences, `reply to ${describeAction(action)}`, first, expected);
  if (action.do === 'dispatch') {
    const known = new Set(deliveries.map(({ token }) => token));
    const used = tokensOf(reply).filter((token) => known.has(token)).length;
    expectSame(differences, 'tokens that were returned before', used, action.own?.length ?? 0);
  }
  if (again) {
    const second = replyOf(action, await again.reply.catch(String), workers);
    expectSame(differences, `reply to the resent command`, second, replyToResend(action, first));
    if (action.do === 'dispatch')
      expectSame(differences, 'tokens of the resent command', tokensOf(await again.reply), tokensOf(reply));
  }
  if (late) {
    const outcomes = (await late.reply) as string[];
    if (!outcomes.every((outcome) => ['lost', 'ended'].includes(outcome)))
      differences.push(`the reply to an old batch is ${JSON.stringify(outcomes)}`);
  }
}

/** Returns the expected reply to a resent command: it has no further effect, and says so. */
function replyToResend(action: Action, first: unknown[]): unknown[] {
  if (action.do === 'dispatch') return first.map((outcome) => (outcome === 'expired' ? 'moved' : outcome));
  return action.do === 'write' ? [] : first;
}

function tokensOf(reply: unknown): string[] {
  return (reply as [string, string][]).map(([status, token]) => (status === 'leased' ? token : ''));
}
