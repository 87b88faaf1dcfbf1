/** How a vision-language model prepares images: `config.json` and `preprocessor_config.json` of transformers. */
import type { ResampleFilter } from '@darkroom/imaging';
import type { ImageTokens } from '@darkroom/kinds';
import { checkModelJson, modelFileError, readModelConfig } from '@darkroom/runtime/model-file';
import { z } from 'zod';

/** Model families, by how they lay out images. */
type ImageLayout = 'llava' | 'idefics3';

/** Preparation of an image, and its tokens. */
export interface ImageConfig extends Omit<ImageTokens, 'token'> {
  /** Inputs of the encoder graph: `[tiles, 3, side, side]`, or `[1, tiles, 3, side, side]` with a mask of pixels. */
  readonly layout: ImageLayout;
  /** Pixels: a tile is a square of this side. */
  readonly side: number;
  /** Fitting of an image that is one tile: scale the shorter side and crop the center, or scale both sides. */
  readonly fit: { readonly type: 'crop'; readonly shortestSide: number } | { readonly type: 'stretch' };
  readonly filter: ResampleFilter;
  /** Pixel values are `(value * scale - mean) / deviation` by channel, of values 0–255. */
  readonly scale: number;
  readonly mean: readonly number[];
  readonly deviation: readonly number[];
}

/** Model types with images, and the layout of their images. */
const layouts: Readonly<Record<string, ImageLayout>> = {
  llava: 'llava',
  idefics3: 'idefics3',
  smolvlm: 'idefics3',
};

/** Supported `model_type` values of models with images. */
export const imageModelTypes = Object.keys(layouts);

const pixels = z.number().int().min(1).max(4096);
const configSchema = z.looseObject({
  model_type: z.string(),
  image_token_id: z.number().int().min(0).optional(),
  image_token_index: z.number().int().min(0).optional(),
  scale_factor: z.number().int().min(1).default(2),
  vision_feature_select_strategy: z.enum(['default', 'full']).default('default'),
  vision_config: z.looseObject({ model_type: z.string().optional(), image_size: pixels, patch_size: pixels }),
  /** Darkroom's own: images per request. */
  min_images: z.literal([0, 1]).default(0),
  max_images: z.number().int().min(1).max(8).default(8),
});

const filters: readonly (ResampleFilter | undefined)[] = [undefined, 'lanczos', 'bilinear', 'bicubic'];
const channels = z.array(z.number()).length(3);
const enabled = z.literal(true, { error: 'is not supported, expected true' }).default(true);
const preprocessorSchema = z.looseObject({
  do_resize: enabled,
  do_rescale: enabled,
  do_normalize: enabled,
  do_center_crop: z.boolean().nullish(),
  crop_size: z.union([pixels, z.looseObject({ height: pixels, width: pixels })]).nullish(),
  do_image_splitting: enabled,
  do_pad: z.boolean().nullish(),
  size: z.union([
    z.object({ shortest_edge: pixels }),
    z.object({ longest_edge: pixels }),
    z.object({ height: pixels, width: pixels }),
  ]),
  max_image_size: z.looseObject({ longest_edge: pixels }).nullish(),
  resample: z
    .number()
    .int()
    .transform((number, context) => {
      const filter = filters[number];
      if (filter === undefined) context.addIssue('is not supported, expected 1 (Lanczos), 2 (bilinear) or 3 (bicubic)');
      return filter ?? z.NEVER;
    }),
  rescale_factor: z.number().default(1 / 255),
  image_mean: channels,
  image_std: channels,
});

/**
 * Reads how a model prepares images; undefined if it reads text only.
 *
 * @throws DarkroomError `model_unsupported` naming the file and the field.
 */
export async function readImageConfig(directory: string, configJson: unknown): Promise<ImageConfig | undefined> {
  const type = (configJson as { model_type?: unknown } | null)?.model_type;
  if (typeof type !== 'string' || !Object.hasOwn(layouts, type)) return undefined;
  const config = checkModelJson('config.json', configJson, configSchema);
  const preprocessor = await readModelConfig(directory, 'preprocessor_config.json', preprocessorSchema);
  const tokenId = config.image_token_id ?? config.image_token_index;
  if (tokenId === undefined) throw modelFileError('config.json', 'image_token_id: is missing');
  const common = {
    tokenId,
    minImages: config.min_images,
    maxImages: config.max_images,
    filter: preprocessor.resample,
    scale: preprocessor.rescale_factor,
    mean: preprocessor.image_mean,
    deviation: preprocessor.image_std,
  };
  const readImages = layouts[type] === 'llava' ? llavaImages : idefics3Images;
  return readImages(config, preprocessor, common);
}

type Config = z.infer<typeof configSchema>;
type Preprocessor = z.infer<typeof preprocessorSchema>;
type CommonFields = Pick<
  ImageConfig,
  'tokenId' | 'minImages' | 'maxImages' | 'filter' | 'scale' | 'mean' | 'deviation'
>;

function llavaImages(config: Config, preprocessor: Preprocessor, common: CommonFields): ImageConfig {
  const { model_type: type, image_size: side, patch_size: patch } = config.vision_config;
  const { size, do_center_crop: crops, crop_size: cropSize, do_pad: pads } = preprocessor;
  // CLIP has one token more than patches. The strategy `default` drops the first token.
  const tokens = Math.floor(side / patch) ** 2 + (type === undefined || type === 'clip_vision_model' ? 1 : 0);
  const perTile = config.vision_feature_select_strategy === 'default' ? tokens - 1 : tokens;
  if (pads === true) throw modelFileError('preprocessor_config.json', 'do_pad: is not supported, expected false');
  const cropSides =
    typeof cropSize === 'object' && cropSize !== null ? [cropSize.width, cropSize.height] : [cropSize ?? side];
  if (crops !== false && cropSides.some((each) => each !== side))
    throw modelFileError('preprocessor_config.json', `crop_size: expected ${side}, the image_size of config.json`);
  if ('longest_edge' in size || ('shortest_edge' in size && crops === false))
    throw modelFileError(
      'preprocessor_config.json',
      'size: expected {"shortest_edge"} with a crop, or {"height", "width"}',
    );
  const fit: ImageConfig['fit'] =
    'shortest_edge' in size ? { type: 'crop', shortestSide: size.shortest_edge } : { type: 'stretch' };
  return { ...common, layout: 'llava', side, perTile, fit };
}

function idefics3Images(config: Config, preprocessor: Preprocessor, common: CommonFields): ImageConfig {
  const { image_size: imageSize, patch_size: patch } = config.vision_config;
  const { size, max_image_size: tile } = preprocessor;
  if (!('longest_edge' in size)) throw modelFileError('preprocessor_config.json', 'size: expected {"longest_edge"}');
  const side = tile?.longest_edge ?? imageSize;
  const perTile = Math.floor(Math.floor(side / patch) ** 2 / config.scale_factor ** 2);
  const tiling = { side, longestSide: size.longest_edge };
  return { ...common, layout: 'idefics3', side, perTile, fit: { type: 'stretch' }, tiling };
}
