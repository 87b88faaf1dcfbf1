import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';

const schema = z.looseObject({
  endpoint: z.string(),
  repo: z.string(),
  revision: z.string(),
  /** All files are of this one. */
  commit: z.string(),
  dtype: z.string(),
});

/** Where a model's directory came from. */
export type ModelSource = z.infer<typeof schema>;

/** In the model's directory; nothing else reads it. */
export const sourceFileName = 'source.json';

/** undefined: not downloaded by us. */
export async function readModelSource(directory: string): Promise<ModelSource | undefined> {
  const text = await readFile(join(directory, sourceFileName), 'utf8').catch(() => undefined);
  if (text === undefined) return undefined;
  try {
    return schema.parse(JSON.parse(text));
  } catch {
    // Somebody else's file of this name.
    return undefined;
  }
}

export async function writeModelSource(directory: string, source: ModelSource): Promise<void> {
  await writeFile(join(directory, sourceFileName), `${JSON.stringify(source, null, 2)}\n`);
}
