export * from './codec/decode-image.ts';
export * from './codec/encode-image.ts';
export * from './codec/resample.ts';
export { withMetadata, withoutMetadata } from './metadata/image-metadata.ts';
export type { FittedImage, ImagePart } from './input/fit-image.ts';
export { ImageReader } from './input/image-reader.ts';
export type { ImageRefusal, ImageSize } from './input/image-refusal.ts';
export { stripImage } from './input/strip-image.ts';
