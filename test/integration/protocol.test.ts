/** A sample of the hand-over of requests beside its model (test/protocol); the systems tests explore more. */
import { allKeys, openTestStore } from '@darkroom/testing';
import { expect, it } from 'vitest';
import { conform } from '../protocol/conform.ts';
import { explore } from '../protocol/explore.ts';
import { maxAttempts } from '../protocol/state.ts';
import { smallScope, wholeScope } from '../protocol/scopes.ts';
import { walk } from '../protocol/walk.ts';
import { keyKinds } from '../protocol/world.ts';

it('conforms to the protocol model with one request and one worker: all transitions of the scripts', async () => {
  const graph = explore(smallScope);
  const { states, transitions, differences } = await conform(openTestStore({ maxAttempts }), graph);
  expect(differences).toEqual([]);
  expect(states).toBe(graph.length);
  expect(transitions).toBe(graph.reduce((sum, { edges }) => sum + edges.length, 0));
});

it('conforms to the protocol model with two requests and two workers: random walks through the scripts', async () => {
  const store = openTestStore({ maxAttempts });
  const ways = Array.from({ length: 20 }, (_way, seed) => walk(store, { scope: wholeScope, seed, steps: 80 }));
  const differing = (await Promise.all(ways)).filter((differences) => differences.length > 0);
  expect(differing).toEqual([]);
  const known = new Set(keyKinds.map(([name]) => name));
  const unknown = (await allKeys(store)).filter((key) => !known.has(key.replace(/^.*?\}:/, '')));
  expect(unknown.filter((key) => !key.includes(':minute:'))).toEqual([]);
});
