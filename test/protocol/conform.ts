/**
 * Drives the real scripts along every transition of an explored graph. What stands in Redis in a state is copied for each of its
 * transitions, so each costs one script and one look, however long the way to it is; what changes nothing shares a copy.
 */
import type { StoreConnection } from '@darkroom/store';
import { compare, compareView } from './compare.ts';
import { baseOf, begin, earlierDispatches, view, type World } from './drive.ts';
import { type Graph, inWords, wayTo } from './explore.ts';
import type { History } from './history.ts';
import type { Action, State } from './state.ts';
import { checkReplies, takeTurns } from './turns.ts';
import { openWorlds, type Worlds } from './world.ts';

/** Commands that are on their way at once: enough to keep Redis busy. */
const statesAtOnce = 32;

export interface Coverage {
  states: number;
  transitions: number;
  /** Commands that were sent once more. */
  resends: number;
  /** The first few, with the shortest way to each. */
  differences: string[];
}

const mostDifferences = 10;

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
    while (!this.#isRed && (number < this.#graph.length || underway.size > 0)) {
      // Those that have been come to.
      while (underway.size < statesAtOnce && this.#histories.has(number)) {
        const covering = this.#coverState(number++).finally(() => underway.delete(covering));
        underway.add(covering);
      }
      await Promise.race(underway);
    }
    await Promise.all(underway);
    return this.coverage;
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
    // Those are besides: what they come to depends on the way, and is the state of another transition.
    const earlier = earlierDispatches(state, history);
    for (const action of earlier)
      walks.push(this.#walk(world, state, [action], { name: `c${this.#copies++}`, isFirst: false }).then(() => {}));
    this.coverage.resends += earlier.length;
    this.coverage.transitions += edges.length;
    const seen = await view(world, state);
    const differences = compareView(seen, state, history);
    if (differences.length > 0) await this.#report(world, state, [], differences);
    await Promise.all(walks);
    await this.#worlds.delete(baseOf(world));
    this.#histories.delete(number);
    this.coverage.states += 1;
  }

  /** Does one thing after the other in a copy, each twice if it may come twice, and looks at what came of all. */
  async #walk(
    from: World,
    state: State,
    actions: readonly Action[],
    to: { name: string; isFirst: boolean },
  ): Promise<History | undefined> {
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
    this.coverage.resends += turns.taken.filter(({ again }) => again !== undefined).length;
    if (differences.length > 0) await this.#report(from, state, actions, differences);
    return differences.length > 0 && !to.isFirst ? undefined : history;
  }

  async #report(from: World, state: State, actions: readonly Action[], differences: readonly string[]): Promise<void> {
    // Which of many it was is found by doing each alone.
    if (actions.length > 1) {
      const count = this.coverage.differences.length;
      for (const action of actions)
        await this.#walk(from, state, [action], { name: `c${this.#copies++}`, isFirst: false });
      if (this.coverage.differences.length > count) return;
    }
    if (this.#isRed) return;
    const way = wayTo(this.#graph, Number(from.name.slice(1)));
    const lines = [...way, ...actions].map((action) => `  ${inWords(action)}`);
    this.coverage.differences.push([...differences, 'after', ...lines].join('\n'));
  }
}
