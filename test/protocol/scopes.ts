/** Scopes of the protocol model: numbers of requests, workers and slots, and the features in use. */
import type { Scope } from './actions.ts';

const allFeatures = { hasProgress: true, hasRelease: true, hasModes: true, hasLives: true, hasExclusive: true };

/** Scopes that `npm run test:all` explores exhaustively. */
export const scopes: Scope[] = [
  { name: 'two requests, two workers', requests: 2, workers: 2, capacity: 2, missedSweeps: 1 },
  { name: 'slots released early', requests: 2, workers: 1, capacity: 3, missedSweeps: 1, hasRelease: true },
  { name: 'exclusive leases', requests: 2, workers: 1, capacity: 3, missedSweeps: 1, hasExclusive: true },
  {
    name: 'a worker reserved for an exclusive request',
    requests: 1,
    workers: 2,
    capacity: 3,
    missedSweeps: 1,
    hasExclusive: true,
  },
  {
    name: 'missed heartbeats and second incarnations',
    requests: 1,
    workers: 2,
    capacity: 3,
    missedSweeps: 2,
    hasLives: true,
  },
  {
    name: 'outputs, checkpoints and attempts',
    requests: 1,
    workers: 1,
    capacity: 3,
    missedSweeps: 2,
    hasProgress: true,
    hasRelease: true,
    hasLives: true,
  },
  { name: 'loading, sleeping, draining', requests: 1, workers: 1, capacity: 3, missedSweeps: 1, hasModes: true },
];

/** Larger scopes, which take minutes each. Explored only with `PROTOCOL=long`. */
export const longScopes: Scope[] = [
  { name: 'two of each, missed heartbeats', requests: 2, workers: 2, capacity: 3, missedSweeps: 2 },
  {
    name: 'two of each, slots released early',
    requests: 2,
    workers: 2,
    capacity: 3,
    missedSweeps: 1,
    hasRelease: true,
  },
  {
    name: 'two of each, outputs and attempts',
    requests: 2,
    workers: 2,
    capacity: 3,
    missedSweeps: 1,
    hasProgress: true,
  },
  { name: 'two of each, second incarnations', requests: 2, workers: 2, capacity: 3, missedSweeps: 1, hasLives: true },
  { name: 'two of each, leases that exceed the capacity', requests: 2, workers: 2, capacity: 3, missedSweeps: 1 },
  {
    name: 'exclusive leases and slots released early',
    requests: 2,
    workers: 1,
    capacity: 3,
    missedSweeps: 1,
    hasExclusive: true,
    hasRelease: true,
  },
  { name: 'two of each, exclusive leases', requests: 2, workers: 2, capacity: 3, missedSweeps: 1, hasExclusive: true },
  {
    name: 'second incarnations, loading, sleeping, draining',
    requests: 1,
    workers: 1,
    capacity: 3,
    missedSweeps: 2,
    hasModes: true,
    hasLives: true,
  },
  {
    name: 'two workers that load, sleep and drain',
    requests: 1,
    workers: 2,
    capacity: 3,
    missedSweeps: 1,
    hasModes: true,
  },
];

/** The scope that `npm test` explores, in seconds. */
export const smallScope: Scope = {
  name: 'one of each',
  requests: 1,
  workers: 1,
  capacity: 3,
  missedSweeps: 1,
  hasRelease: true,
};

/** The full protocol. It has too many states to explore, so tests sample it with random walks. */
export const wholeScope: Scope = {
  name: 'full protocol',
  requests: 2,
  workers: 2,
  capacity: 3,
  missedSweeps: 2,
  ...allFeatures,
};
