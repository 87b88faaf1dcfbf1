/** Random ways through the whole protocol, far longer than the shortest: a sample of what is too much to be gone through. */
import type { StoreConnection } from '@darkroom/store';
import { actionsIn, type Scope } from './actions.ts';
import { compare, compareView } from './compare.ts';
import { baseOf, begin, view } from './drive.ts';
import { inWords } from './explore.ts';
import { apply } from './model.ts';
import { type Action, initialState, type State } from './state.ts';
import { checkReplies, takeTurns } from './turns.ts';
import { openWorlds } from './world.ts';

export interface WalkOptions {
  scope: Scope;
  seed: number;
  /** Actions of each way. */
  steps: number;
}

/** Walks one way. Returns the differences of the step that had the first, and the way to it; nothing if all was as it should be. */
export async function walk(store: StoreConnection, { scope, seed, steps }: WalkOptions): Promise<string[]> {
  const worlds = openWorlds(store);
  const random = randomBy(seed);
  const name = `w${seed}`;
  let state = initialState(scope);
  let history = await begin(store, name, state, worlds);
  const way: Action[] = [];
  for (let step = 0; step < steps; step++) {
    let action = pick(actionsIn(state, scope), random);
    // After the last end nothing more can happen, so ends are rare.
    for (let again = 0; again < 8 && endsSome(state, action); again++) action = pick(actionsIn(state, scope), random);
    const world = { store, name, history };
    way.push(action);
    const turns = takeTurns(world, state, [action]);
    const looking = worlds.look(baseOf(world));
    const viewing = view(world, turns.state);
    const differences: string[] = [];
    for (const turn of turns.taken) await checkReplies(turn, world, differences);
    ({ state } = turns);
    history = { ...turns.history, look: await looking, deliveries: await turns.deliveries() };
    differences.push(...compare(history.look, state, history), ...compareView(await viewing, state, history));
    if (differences.length > 0) return [...differences, `after (seed ${seed})`, ...way.map(inWords)];
  }
  return [];
}

function endsSome(state: State, action: Action): boolean {
  const after = apply(state, action).state;
  return after.requests.some(({ phase }, request) => phase === 'ended' && state.requests[request]!.phase !== 'ended');
}

/** Each kind of action is as likely as another: there are many dispatches and one sweep. */
function kindOf(action: Action): string {
  if (action.do === 'dispatch') return `${action.do} ${action.leases.some(({ isAlone }) => isAlone)}`;
  return action.do === 'write' ? `${action.do} ${action.writes[0]![1]}` : action.do;
}

function pick(actions: readonly Action[], random: () => number): Action {
  const kinds = [...new Set(actions.map(kindOf))];
  const kind = kinds[Math.floor(random() * kinds.length)];
  const some = actions.filter((action) => kindOf(action) === kind);
  return some[Math.floor(random() * some.length)]!;
}

/** mulberry32: the same numbers for the same seed. */
function randomBy(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
