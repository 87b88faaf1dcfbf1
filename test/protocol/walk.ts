/**
 * Random walks through the whole protocol, far longer than the shortest ways: a sample of what is too large to explore.
 */
import type { StoreConnection } from '@darkroom/store';
import { actionsIn, type Scope } from './actions.ts';
import { compare, compareView } from './compare.ts';
import { baseOf, begin, view } from './drive.ts';
import { describeAction } from './explore.ts';
import { apply } from './model.ts';
import { type Action, initialState, type State } from './state.ts';
import { checkReplies, sendActions } from './turns.ts';
import { openWorlds } from './world.ts';

export interface WalkOptions {
  scope: Scope;
  seed: number;
  /** Actions per walk. */
  steps: number;
}

/**
 * Runs one random walk. Returns the differences of the first step that has any, and the actions up to it; empty if
 * there are none.
 */
export async function walk(store: StoreConnection, { scope, seed, steps }: WalkOptions): Promise<string[]> {
  const worlds = openWorlds(store);
  const random = randomBy(seed);
  const name = `w${seed}`;
  let state = initialState(scope);
  let history = await begin(store, name, state, worlds);
  const way: Action[] = [];
  for (let step = 0; step < steps; step++) {
    let action = pick(actionsIn(state, scope), random);
    // Nothing can happen after the last end, so make ends rare.
    for (let again = 0; again < 8 && endsSome(state, action); again++) action = pick(actionsIn(state, scope), random);
    const world = { store, name, history };
    way.push(action);
    const run = sendActions(world, state, [action]);
    const reading = worlds.read(baseOf(world));
    const pendingView = view(world, run.state);
    const differences: string[] = [];
    for (const each of run.taken) await checkReplies(each, world, differences);
    ({ state } = run);
    history = { ...run.history, snapshot: await reading, deliveries: await run.deliveries() };
    differences.push(...compare(history.snapshot, state, history), ...compareView(await pendingView, state, history));
    if (differences.length > 0) return [...differences, `after (seed ${seed})`, ...way.map(describeAction)];
  }
  return [];
}

function endsSome(state: State, action: Action): boolean {
  const after = apply(state, action).state;
  return after.requests.some(({ phase }, request) => phase === 'ended' && state.requests[request]!.phase !== 'ended');
}

/** Returns the kind of an action; all kinds are equally likely, although there are many dispatches and one sweep. */
function kindOf(action: Action): string {
  if (action.do === 'dispatch') return `${action.do} ${action.leases.some(({ isExclusive }) => isExclusive)}`;
  return action.do === 'write' ? `${action.do} ${action.writes[0]![1]}` : action.do;
}

function pick(actions: readonly Action[], random: () => number): Action {
  const kinds = [...new Set(actions.map(kindOf))];
  const kind = kinds[Math.floor(random() * kinds.length)];
  const some = actions.filter((action) => kindOf(action) === kind);
  return some[Math.floor(random() * some.length)]!;
}

/** Creates a mulberry32 generator: the same seed gives the same numbers. */
function randomBy(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
