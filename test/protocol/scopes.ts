/** The parts of the protocol that are gone through as wholes. */
import type { Scope } from './actions.ts';

const every = { hasProgress: true, hasRelease: true, hasModes: true, hasLives: true, hasAlone: true };

/** Every pair of what may meet is in one of them. */
export const scopes: Scope[] = [
  { name: 'two requests, two workers', requests: 2, workers: 2, capacity: 2, missedSweeps: 1 },
  { name: 'places that are promised early', requests: 2, workers: 1, capacity: 3, missedSweeps: 1, hasRelease: true },
  { name: 'who must run alone', requests: 2, workers: 1, capacity: 3, missedSweeps: 1, hasAlone: true },
  {
    name: 'a worker kept for who must run alone',
    requests: 1,
    workers: 2,
    capacity: 3,
    missedSweeps: 1,
    hasAlone: true,
  },
  { name: 'silence and second lives', requests: 1, workers: 2, capacity: 3, missedSweeps: 2, hasLives: true },
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

/** Minutes each: `PROTOCOL=long`. */
export const longScopes: Scope[] = [
  { name: 'two of each, silent for a while', requests: 2, workers: 2, capacity: 3, missedSweeps: 2 },
  {
    name: 'two of each, places promised early',
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
  { name: 'two of each, second lives', requests: 2, workers: 2, capacity: 3, missedSweeps: 1, hasLives: true },
  { name: 'two of each, a second that overhangs', requests: 2, workers: 2, capacity: 3, missedSweeps: 1 },
  {
    name: 'alone beside early places',
    requests: 2,
    workers: 1,
    capacity: 3,
    missedSweeps: 1,
    hasAlone: true,
    hasRelease: true,
  },
  { name: 'two of each, alone', requests: 2, workers: 2, capacity: 3, missedSweeps: 1, hasAlone: true },
  {
    name: 'second lives of who loads, sleeps and drains',
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

/** What goes on within seconds. */
export const smallScope: Scope = {
  name: 'one of each',
  requests: 1,
  workers: 1,
  capacity: 3,
  missedSweeps: 1,
  hasRelease: true,
};

/** All there is, which only samples are taken of. */
export const wholeScope: Scope = { name: 'all of it', requests: 2, workers: 2, capacity: 3, missedSweeps: 2, ...every };
