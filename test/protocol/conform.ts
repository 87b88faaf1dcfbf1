/**
 * Drives the real scripts along every transition of an explored graph. What stands in Redis in a state is copied for each of its
 * transitions, so each costs one script and one look, however long the way to it is; what changes nothing shares a copy.
 */
import type { StoreConnection } from '@darkroom/store';
import { compare, expectSame, replyOf } from './compare.ts';
import { baseOf, planOf, send, sendAgain, type Sent, type World } from './drive.ts';
import { type Graph, inWords, wayTo } from './explore.ts';
import { beginHistory, type Call, type History, tell } from './history.ts';
import { type Action, apply, type State } from './model.ts';
import { openWorlds, requestIds, type Worlds, workerIds } from './world.ts';

/** Commands that are on their way at once: enough to keep Redis busy. */
const statesAtOnce = 24;

export interface Coverage {
  states: number;
  transitions: number;
  /** Commands that were sent once more. */
  resends: number;
  /** The first few, with the shortest way to each. */
  differences: string[];
}

const mostDifferences = 10;

/** Goes along all transitions of the states that `isTaken`, and to all states. */
export async function conform(store: StoreConnection, graph: Graph): Promise<Coverage> {
  const run = new Conformance(store, graph);
  return run.cover();
}

class Conformance {
  readonly #store: StoreConnection;
  readonly #graph: Graph;
  readonly #worlds: Worlds;
  readonly #histories = new Map<number, History>();
  readonly coverage: Coverage = { states: 0, transitions: 0, resends: 0, differences: [] };
  #copies = 0;

  constructor(store: StoreConnection, graph: Graph) {
    this.#store = store;
    this.#graph = graph;
    this.#worlds = openWorlds(store);
  }

  async cover(): Promise<Coverage> {
    await this.#begin();
    for (let number = 0; number < this.#graph.length && !this.#isRed; ) {
      // Those that have been come to.
      const taken: Promise<void>[] = [];
      while (taken.length < statesAtOnce && this.#histories.has(number)) taken.push(this.#coverState(number++));
      await Promise.all(taken);
    }
    return this.coverage;
  }

  /** One sweep has been: the first always counts, and no other has to. */
  async #begin(): Promise<void> {
    const world: World = { store: this.#store, name: 's0', history: beginHistory() };
    await send(world, this.#graph[0]!.state, { do: 'sweep' })?.reply;
    this.#histories.set(0, { ...world.history, look: await this.#worlds.look(baseOf(world)) });
  }

  get #isRed(): boolean {
    return this.coverage.differences.length >= mostDifferences;
  }

  async #coverState(number: number): Promise<void> {
    const { state, edges } = this.#graph[number]!;
    const history = this.#histories.get(number)!;
    const world: World = { store: this.#store, name: `s${number}`, history };
    const still = edges.filter(({ to, isSwapped }) => to === number && !isSwapped).map(({ action }) => action);
    const moving = edges.filter(({ to, isSwapped }) => to !== number || isSwapped);
    const walks = moving.map(({ action, to, isFirst, isSwapped }) => {
      const name = isFirst ? `s${to}` : `c${this.#copies++}`;
      return this.#walk(world, state, [action], { name, isFirst }).then((after) => {
        if (!isFirst || after === undefined) return;
        const workers = isSwapped ? after.workers.toReversed() : after.workers;
        this.#histories.set(to, { ...after, workers });
      });
    });
    walks.push(this.#walk(world, state, still, { name: `c${this.#copies++}`, isFirst: false }).then(() => {}));
    await Promise.all(walks);
    await this.#worlds.delete(baseOf(world));
    this.#histories.delete(number);
    this.coverage.states += 1;
  }

  /** Does one thing after the other in a copy, each twice if it may come twice, and looks at what came of all. */
  async #walk(from: World, state: State, actions: readonly Action[], to: { name: string; isFirst: boolean }): Promise<History | undefined> {
    const world = { ...from, name: to.name };
    const differences: string[] = [];
    const copying = this.#worlds.copy(baseOf(from), baseOf(world));
    const turns = takeTurns(world, state, actions);
    const looking = this.#worlds.look(baseOf(world), { isLast: !to.isFirst });
    await copying;
    for (const turn of turns.taken) await checkReplies(turn, world, differences);
    const look = await looking;
    const history = { ...turns.history, look, deliveries: await turns.deliveries() };
    differences.push(...compare(look, turns.state, history));
    this.coverage.transitions += actions.length;
    this.coverage.resends += turns.taken.filter(({ again }) => again !== undefined).length;
    if (differences.length > 0) await this.#report(from, state, actions, differences);
    return differences.length > 0 && !to.isFirst ? undefined : history;
  }

  async #report(from: World, state: State, actions: readonly Action[], differences: readonly string[]): Promise<void> {
    // Which of many it was is found by doing each alone.
    if (actions.length > 1) {
      const count = this.coverage.differences.length;
      for (const action of actions) await this.#walk(from, state, [action], { name: `c${this.#copies++}`, isFirst: false });
      if (this.coverage.differences.length > count) return;
    }
    if (this.#isRed) return;
    const way = wayTo(this.#graph, Number(from.name.slice(1)));
    const lines = [...way, ...actions].map((action) => `  ${inWords(action)}`);
    this.coverage.differences.push([...differences, 'after', ...lines].join('\n'));
  }
}

interface Turn {
  action: Action;
  sent: Sent | undefined;
  expected: unknown[];
  /** The same bytes once more, at once: the answer was lost. */
  again: Sent | undefined;
  /** What this worker wrote before that, once more: it was on its way for long. */
  late: Sent | undefined;
}

/** Sends all without waiting for an answer. */
function takeTurns(world: World, from: State, actions: readonly Action[]) {
  let state = from;
  let { history } = world;
  const taken: Turn[] = [];
  const { deliveries } = history;
  for (const action of actions) {
    const here = { ...world, history };
    const outcome = apply(state, action);
    const sent = send(here, state, action);
    const mayComeTwice = ['admit', 'dispatch', 'write', 'write-stale'].includes(action.do);
    const again = sent && mayComeTwice ? sendAgain(here, sent.call) : undefined;
    const earlier = 'worker' in action && action.do.startsWith('write') ? history.writes[history.workers[action.worker]!]!.last : undefined;
    const late = earlier && sendAgain(here, earlier);
    taken.push({ action, sent, expected: outcome.reply, again, late });
    history = tell(sent ? note(history, action, sent.call) : history, outcome);
    state = outcome.state;
  }
  return { state, history, taken, deliveries: async () => [...deliveries, ...(await newDeliveries(taken, world.history))] };
}

async function newDeliveries(turns: readonly Turn[], { workers, deliveries }: History): Promise<History['deliveries']> {
  const found: History['deliveries'][number][] = [];
  for (const { action, sent } of turns) {
    if (action.do !== 'dispatch' || sent === undefined) continue;
    const reply = (await sent.reply) as [status: string, token: string][];
    const planned = action.leases.flatMap(({ worker, requests }) => requests.map((request) => ({ worker, request })));
    for (const [index, [status, token]] of reply.entries()) {
      const { worker, request } = planned[index]!;
      if (status === 'leased') found.push({ id: requestIds[request]!, token, place: workers[worker]! });
    }
  }
  const known = new Set(deliveries.map(({ token }) => token));
  return found.map((delivery) => (known.has(delivery.token) ? { ...delivery, token: `${delivery.token} again` } : delivery));
}

/** With what was sent, for it may come again. */
function note(history: History, action: Action, call: Call): History {
  if (action.do === 'admit') return { ...history, admissions: new Map([...history.admissions, [action.request, call]]) };
  if (action.do === 'dispatch') {
    return { ...history, dispatches: new Map([...history.dispatches, [planOf(history, action), call]]) };
  }
  if (action.do !== 'write' && action.do !== 'write-stale') return history;
  const place = history.workers[action.worker]!;
  const writes = history.writes.map((each, index) => (index === place ? { last: call, batch: each.batch + 1 } : each));
  return { ...history, writes };
}

async function checkReplies({ action, sent, expected, again, late }: Turn, { history }: World, differences: string[]): Promise<void> {
  const reply = await sent?.reply.catch(String);
  const first = sent ? replyOf(action, reply, history.workers) : [];
  expectSame(differences, `answer to ${inWords(action)}`, first, expected);
  if (again) {
    const second = replyOf(action, await again.reply.catch(String), history.workers);
    expectSame(differences, `answer to the same again`, second, answerToSame(action, first, second));
    if (action.do === 'dispatch') expectSame(differences, 'tokens of the same again', tokensOf(await again.reply), tokensOf(reply));
  }
  if (late) {
    const answers = (await late.reply) as string[];
    if (!answers.every((answer) => ['lost', 'ended'].includes(answer))) differences.push(`an old batch is answered ${JSON.stringify(answers)}`);
  }
}

/** What was done is not done again, and who sent it is told so. */
function answerToSame(action: Action, first: unknown[], second: unknown[]): unknown[] {
  if (action.do === 'dispatch') return first.map((outcome) => (outcome === 'expired' ? 'moved' : outcome));
  // A worker that is not there has written nothing either, and keeps no count.
  if (action.do === 'write-stale' && second.length > 0) return first;
  return action.do === 'write' || action.do === 'write-stale' ? [] : first;
}

function tokensOf(reply: unknown): unknown[] {
  return (reply as [string, string][]).map(([status, token]) => (status === 'leased' ? token : ''));
}

