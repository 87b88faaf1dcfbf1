/**
 * Drives the real scripts along every transition of the protocol model (test/protocol). `PROTOCOL=long` adds the larger
 * scopes and longer walks, and takes more than half an hour.
 */
import { openTestStore } from '@darkroom/testing';
import { describe, expect, it } from 'vitest';
import { conform } from '../protocol/conform.ts';
import { explore, describeAction, stuckIn, wayTo } from '../protocol/explore.ts';
import { type Action, maxAttempts } from '../protocol/state.ts';
import { longScopes, scopes, wholeScope } from '../protocol/scopes.ts';
import { walk } from '../protocol/walk.ts';

const isLong = process.env['PROTOCOL'] === 'long';
const timeout = isLong ? 3_600_000 : 300_000;

/** Returns true for actions of formers, workers, janitors and time, which need no client. */
function isByItself(action: Action): boolean {
  return ['dispatch', 'write', 'register', 'sweep', 'lapse-mark', 'lapse-reservation'].includes(action.do);
}

describe.each(isLong ? [...scopes, ...longScopes] : scopes)('$name', (scope) => {
  it(
    'no state breaks what must hold, all can come to rest, and the scripts go the same ways',
    { timeout },
    async () => {
      const beganMs = performance.now();
      const graph = explore(scope);
      const stuck = stuckIn(graph, isByItself).map((number) => wayTo(graph, number).map(describeAction));
      expect(stuck.slice(0, 1)).toEqual([]);
      const { states, transitions, resends, differences } = await conform(openTestStore({ maxAttempts }), graph);
      expect(differences).toEqual([]);
      expect(states).toBe(graph.length);
      expect(transitions).toBe(graph.reduce((sum, { edges }) => sum + edges.length, 0));
      const seconds = ((performance.now() - beganMs) / 1000).toFixed(1);
      console.log(`${scope.name}: ${states} states, ${transitions} transitions, ${resends} sent again, ${seconds} s`);
    },
  );
});

it.each([wholeScope, ...longScopes])('random ways: $name', { timeout }, async (scope) => {
  const store = openTestStore({ maxAttempts });
  for (let round = 0; round < (isLong ? 100 : 1); round++) {
    const seeds = Array.from({ length: scope === wholeScope ? 32 : 8 }, (_way, index) => 1000 + 32 * round + index);
    const ways = await Promise.all(seeds.map((seed) => walk(store, { scope, seed, steps: 200 })));
    expect(ways.filter((differences) => differences.length > 0)).toEqual([]);
  }
});
