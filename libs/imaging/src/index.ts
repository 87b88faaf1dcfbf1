export * from './encode-picture.ts';
export { withMetadata, withoutMetadata } from './metadata/picture-metadata.ts';
