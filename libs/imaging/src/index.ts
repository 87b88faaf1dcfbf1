export * from './decode-picture.ts';
export * from './encode-picture.ts';
export { withMetadata, withoutMetadata } from './metadata/picture-metadata.ts';
export * from './read-picture.ts';
