/** One action after the other on the real scripts, what may come twice twice, and what is answered. */
import { replyOf } from './compare.ts';
import { expectSame } from './differences.ts';
import { planOf, send, sendAgain, type Sent, type World } from './drive.ts';
import { inWords } from './explore.ts';
import { type Call, type History, tell } from './history.ts';
import { apply } from './model.ts';
import type { Action, State } from './state.ts';
import { requestIds } from './world.ts';

export interface Turn {
  action: Action;
  sent: Sent | undefined;
  expected: unknown[];
  /** The same bytes once more, at once: the answer was lost. */
  again: Sent | undefined;
  /** What this worker wrote before that, once more: it was on its way for long. */
  late: Sent | undefined;
}

/** Sends all without waiting for an answer. */
export function takeTurns(world: World, from: State, actions: readonly Action[]) {
  let state = from;
  let { history } = world;
  const taken: Turn[] = [];
  const { deliveries } = history;
  for (const action of actions) {
    const here = { ...world, history };
    const outcome = apply(state, action);
    const sent = send(here, state, action);
    const mayComeTwice = ['admit', 'dispatch', 'write'].includes(action.do);
    const again = sent && mayComeTwice ? sendAgain(here, sent.call) : undefined;
    const earlier = action.do === 'write' ? history.writes[history.workers[action.worker]!]!.last : undefined;
    const late = earlier && sendAgain(here, earlier);
    taken.push({ action, sent, expected: outcome.reply, again, late });
    history = tell(sent ? note(history, action, sent.call) : history, outcome);
    state = outcome.state;
  }
  return {
    state,
    history,
    taken,
    deliveries: async () => [...deliveries, ...(await newDeliveries(taken, world.history))],
  };
}

async function newDeliveries(turns: readonly Turn[], { workers }: History): Promise<History['deliveries']> {
  const found: History['deliveries'][number][] = [];
  for (const { action, sent } of turns) {
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

/** With what was sent, for it may come again. */
function note(history: History, action: Action, call: Call): History {
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
  { action, sent, expected, again, late }: Turn,
  { history: { workers, deliveries } }: World,
  differences: string[],
): Promise<void> {
  const reply = await sent?.reply.catch(String);
  const first = sent ? replyOf(action, reply, workers) : [];
  expectSame(differences, `answer to ${inWords(action)}`, first, expected);
  if (action.do === 'dispatch') {
    const known = new Set(deliveries.map(({ token }) => token));
    const used = tokensOf(reply).filter((token) => known.has(token)).length;
    expectSame(differences, 'tokens that were used before', used, action.own?.length ?? 0);
  }
  if (again) {
    const second = replyOf(action, await again.reply.catch(String), workers);
    expectSame(differences, `answer to the same again`, second, answerToSame(action, first));
    if (action.do === 'dispatch')
      expectSame(differences, 'tokens of the same again', tokensOf(await again.reply), tokensOf(reply));
  }
  if (late) {
    const answers = (await late.reply) as string[];
    if (!answers.every((answer) => ['lost', 'ended'].includes(answer)))
      differences.push(`an old batch is answered ${JSON.stringify(answers)}`);
  }
}

/** What was done is not done again, and who sent it is told so. */
function answerToSame(action: Action, first: unknown[]): unknown[] {
  if (action.do === 'dispatch') return first.map((outcome) => (outcome === 'expired' ? 'moved' : outcome));
  return action.do === 'write' ? [] : first;
}

function tokensOf(reply: unknown): string[] {
  return (reply as [string, string][]).map(([status, token]) => (status === 'leased' ? token : ''));
}
