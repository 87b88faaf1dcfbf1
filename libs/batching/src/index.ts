export * from './plan-leases.ts';
export * from './plan-moves.ts';
