export * from './decode-picture.ts';
export * from './encode-picture.ts';
export * from './read-picture.ts';
