export * from './plan-leases.ts';
