/** Explores all reachable states by the shortest ways, and checks the invariants in each. */
import { actionsIn, type Scope } from './actions.ts';
import { brokenBy, brokenIn } from './invariants.ts';
import { apply } from './model.ts';
import { type Action, initialState, type State } from './state.ts';

export interface Edge {
  action: Action;
  /** Number of the state after it. */
  to: number;
  /** True for the first transition that reaches that state. */
  isFirst: boolean;
  /** In the state `to`, the two workers are swapped. */
  isSwapped: boolean;
}

export interface Node {
  state: State;
  edges: Edge[];
  from?: { node: number; action: Action };
}

/** By number; the first state is the initial one, the others are in breadth-first order. */
export type Graph = Node[];

/** Returns the representative of states that differ only in the order of workers: the one whose JSON sorts first. */
export function canonicalize(state: State): { key: string; state: State; isSwapped: boolean } {
  const key = JSON.stringify(state);
  if (state.workers.length < 2) return { key, state, isSwapped: false };
  const swapped: State = {
    capacity: state.capacity,
    missedSweeps: state.missedSweeps,
    requests: state.requests.map((request) => ({
      ...request,
      worker: request.worker === null ? null : 1 - request.worker,
    })),
    workers: state.workers.toReversed(),
    marks: state.marks.toReversed(),
    reserved: state.reserved === null ? null : 1 - state.reserved,
  };
  const otherKey = JSON.stringify(swapped);
  return otherKey < key ? { key: otherKey, state: swapped, isSwapped: true } : { key, state, isSwapped: false };
}

/** @throws at the first state or transition that violates an invariant, with the way to it. */
export function explore(scope: Scope): Graph {
  const graph: Graph = [{ state: initialState(scope), edges: [] }];
  const numbers = new Map([[canonicalize(graph[0]!.state).key, 0]]);
  for (let number = 0; number < graph.length; number++) {
    const node = graph[number]!;
    for (const action of actionsIn(node.state, scope)) {
      const outcome = apply(node.state, action);
      const { key, state, isSwapped } = canonicalize(outcome.state);
      const known = numbers.get(key);
      const to = known ?? graph.length;
      if (known === undefined) {
        numbers.set(key, to);
        graph.push({ state, edges: [], from: { node: number, action } });
      }
      node.edges.push({ action, to, isFirst: known === undefined, isSwapped });
      const broken = [
        ...brokenBy(node.state, action, outcome),
        ...(known === undefined ? brokenIn(outcome.state) : []),
      ];
      if (broken.length > 0)
        throw new Error(
          `${broken.join(', ')}\n${wayTo(graph, number).map(describeAction).join('\n')}\n${describeAction(action)}`,
        );
    }
  }
  return graph;
}

export function wayTo(graph: Graph, number: number): Action[] {
  const way: Action[] = [];
  for (let { from } = graph[number]!; from !== undefined; { from } = graph[from.node]!) way.unshift(from.action);
  return way;
}

export function describeAction(action: Action): string {
  return JSON.stringify(action).replaceAll(/["{}]/g, '').replaceAll(',', ' ');
}

/**
 * Returns the states from which the given actions (those of formers, workers and janitors) cannot reach a state at
 * rest: every admitted request ended, no worker, no lease.
 */
export function stuckIn(graph: Graph, isHelpful: (action: Action) => boolean): number[] {
  const before: number[][] = graph.map(() => []);
  for (const [number, { edges }] of graph.entries())
    for (const { action, to } of edges) if (isHelpful(action)) before[to]!.push(number);
  const good = new Set(graph.flatMap(({ state }, number) => (isAtRest(state) ? [number] : [])));
  for (const number of good) for (const earlier of before[number]!) good.add(earlier);
  return graph.flatMap((_node, number) => (good.has(number) ? [] : [number]));
}

export function isAtRest({ requests, workers }: State): boolean {
  return (
    requests.every(({ phase }) => phase === 'none' || phase === 'ended') && workers.every((worker) => worker === null)
  );
}
