export * from './next-batch.ts';
