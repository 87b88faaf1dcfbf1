import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';

const schema = z.looseObject({
  endpoint: z.string(),
  repo: z.string(),
  revision: z.string(),
  /** Commit that `revision` named at the time of the download. */
  commit: z.string(),
  dtype: z.string(),
});

/** Repository, commit and dtype of a downloaded model. */
export type ModelSource = z.infer<typeof schema>;

/** File in the model's directory; only the `model` command reads it. */
export const sourceFileName = 'source.json';

/** Reads the source of a model; undefined if the model was not downloaded by this command. */
export async function readModelSource(directory: string): Promise<ModelSource | undefined> {
  const text = await readFile(join(directory, sourceFileName), 'utf8').catch(() => undefined);
  if (text === undefined) return undefined;
  try {
    return schema.parse(JSON.parse(text));
  } catch {
    // Another program's file of the same name.
    return undefined;
  }
}

export async function writeModelSource(directory: string, source: ModelSource): Promise<void> {
  await writeFile(join(directory, sourceFileName), `${JSON.stringify(source, null, 2)}\n`);
}
