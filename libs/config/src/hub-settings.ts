import { defineSetting } from './setting.ts';
import { httpUrl, hubToken } from './setting-kinds.ts';

/** The part of the table of settings (settings.ts) that is about the Hugging Face hub, by the names its own tools use. */
export const hubSettings = {
  hubToken: defineSetting({
    variable: 'HF_TOKEN',
    kind: hubToken,
    default: undefined,
    defaultDoc: 'none',
    doc: 'Your access token at the Hugging Face hub, for private models and those whose licence you accepted there.',
    apps: ['model'],
    isSecret: true,
  }),
  hubEndpoint: defineSetting({
    variable: 'HF_ENDPOINT',
    // Paths are put behind it.
    kind: { ...httpUrl, schema: httpUrl.schema.transform((text) => text.replace(/\/+$/, '')) },
    default: 'https://huggingface.co',
    doc: 'The hub, or a mirror of it, that models are downloaded from.',
    apps: ['model'],
  }),
};
