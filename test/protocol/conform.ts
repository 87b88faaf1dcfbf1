/**
 * Runs the real scripts along every transition of an explored graph. The keys of a state are copied for each of its
 * transitions, so a transition costs one script and one read of the keys, however long the way to the state.
 * Transitions that change nothing share a copy.
 */
import type { StoreConnection } from '@darkroom/store';
import { compare, compareView } from './compare.ts';
import { baseOf, begin, earlierDispatches, view, type World } from './drive.ts';
import { type Graph, describeAction, wayTo } from './explore.ts';
import type { History } from './history.ts';
import type { Action, State } from './state.ts';
import { checkReplies, sendActions } from './turns.ts';
import { openWorlds, type Worlds } from './world.ts';

/** Number of states whose commands are in flight at the same time: enough to keep Redis busy. */
const statesAtOnce = 32;

export interface Coverage {
  states: number;
  transitions: number;
  /** Commands that were sent a second time. */
  resends: number;
  /** The first differences, each with the shortest way to it. */
  differences: string[];
}

const maxDifferences = 10;

export function conform(store: StoreConnection, graph: Graph): Promise<Coverage> {
  return new Conformance(store, graph).cover();
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
    this.#histories.set(0, await begin(this.#store, 's0', this.#graph[0]!.state, this.#worlds));
    const underway = new Set<Promise<void>>();
    let number = 0;
    while (!this.#hasTooManyDifferences && (number < this.#graph.length || underway.size > 0)) {
      // Start the states that have been reached.
      while (underway.size < statesAtOnce && this.#histories.has(number)) {
        const covering = this.#coverState(number++).finally(() => underway.delete(covering));
        underway.add(covering);
      }
      await Promise.race(underway);
    }
    await Promise.all(underway);
    return this.coverage;
  }

  get #hasTooManyDifferences(): boolean {
    return this.coverage.differences.length >= maxDifferences;
  }

  async #coverState(number: number): Promise<void> {
    const { state, edges } = this.#graph[number]!;
    const history = this.#histories.get(number)!;
    const world: World = { store: this.#store, name: `s${number}`, history };
    const unchanged = edges.filter(({ to, isSwapped }) => to === number && !isSwapped).map(({ action }) => action);
    const changing = edges.filter(({ to, isSwapped }) => to !== number || isSwapped);
    const walks = changing.map(({ action, to, isFirst, isSwapped }) => {
      const name = isFirst ? `s${to}` : `c${this.#copies++}`;
      return this.#walk(world, state, [action], { name, isFirst }).then((after) => {
        if (!isFirst || after === undefined) return;
        const workers = isSwapped ? after.workers.toReversed() : after.workers;
        this.#histories.set(to, { ...after, workers });
      });
    });
    walks.push(this.#walk(world, state, unchanged, { name: `c${this.#copies++}`, isFirst: false }).then(() => {}));
    // Resend earlier dispatches as well. Their outcomes depend on the way to this state, so they are no transitions of
    // the graph.
    const earlier = earlierDispatches(state, history);
    for (const action of earlier)
      walks.push(this.#walk(world, state, [action], { name: `c${this.#copies++}`, isFirst: false }).then(() => {}));
    this.coverage.resends += earlier.length;
    this.coverage.transitions += edges.length;
    const dispatchable = await view(world, state);
    const differences = compareView(dispatchable, state, history);
    if (differences.length > 0) await this.#report(world, state, [], differences);
    await Promise.all(walks);
    await this.#worlds.delete(baseOf(world));
    this.#histories.delete(number);
    this.coverage.states += 1;
  }

  /** Runs actions in a copy of a world, resends those that may be resent, and compares the keys at the end. */
  async #walk(
    from: World,
    state: State,
    actions: readonly Action[],
    to: { name: string; isFirst: boolean },
  ): Promise<History | undefined> {
    const world = { ...from, name: to.name };
    const differences: string[] = [];
    const copying = this.#worlds.copy(baseOf(from), baseOf(world));
    const run = sendActions(world, state, actions);
    const reading = this.#worlds.read(baseOf(world), { isLast: !to.isFirst });
    await copying;
    for (const each of run.taken) await checkReplies(each, world, differences);
    const snapshot = await reading;
    const history = { ...run.history, snapshot, deliveries: await run.deliveries() };
    differences.push(...compare(snapshot, run.state, history));
    this.coverage.resends += run.taken.filter(({ again }) => again !== undefined).length;
    if (differences.length > 0) await this.#report(from, state, actions, differences);
    return differences.length > 0 && !to.isFirst ? undefined : history;
  }

  async #report(from: World, state: State, actions: readonly Action[], differences: readonly string[]): Promise<void> {
    // To find the action with the difference, run each alone.
    if (actions.length > 1) {
      const count = this.coverage.differences.length;
      for (const action of actions)
        await this.#walk(from, state, [action], { name: `c${this.#copies++}`, isFirst: false });
      if (this.coverage.differences.length > count) return;
    }
    if (this.#hasTooManyDifferences) return;
    const way = wayTo(this.#graph, Number(from.name.slice(1)));
    const lines = [...way, ...actions].map((action) => `  ${describeAction(action)}`);
    this.coverage.differences.push([...differences, 'after', ...lines].join('\n'));
  }
}
