export const outputFormats = ['png', 'jpeg', 'webp'] as const;
export type OutputFormat = (typeof outputFormats)[number];

export const contentTypes: Readonly<Record<OutputFormat, string>> = {
  png: 'image/png',
  jpeg: 'image/jpeg',
  webp: 'image/webp',
};
