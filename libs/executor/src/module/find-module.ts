import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

/** What to import for a module that a setting names: the URL of a file, or the name of a package; undefined if there is no such file. */
export async function findModule(module: string): Promise<string | undefined> {
  if (!/^[./]/.test(module)) return module;
  const path = resolve(module);
  const found = await stat(path).catch(() => undefined);
  return found?.isFile() === true ? pathToFileURL(path).href : undefined;
}
