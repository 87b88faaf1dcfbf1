export * from './encode-picture.ts';
