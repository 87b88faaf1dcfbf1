import { stat } from 'node:fs/promises';
import { basename, isAbsolute, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { DarkroomError } from '@darkroom/core';

/** A setting that names a module. */
export interface ModuleSetting {
  readonly name: 'EXECUTOR' | 'JUDGE' | 'MODULE';
  /** A path that begins with . or /, or the name of a package. */
  readonly module: string;
}

/**
 * Resolves a module to what `import()` takes: a file's URL or a package name.
 *
 * @throws DarkroomError if there is no such file.
 */
export async function findModule(setting: ModuleSetting): Promise<string> {
  const { module } = setting;
  if (!/^[./]/.test(module)) return module;
  const path = resolve(module);
  const found = await stat(path).catch(() => undefined);
  if (found?.isFile() === true) return pathToFileURL(path).href;
  throw startError(setting, 'expected the path of a module, and there is no such file');
}

/**
 * Returns the error for a module that cannot start. With the module's own message (`thrown`) its code is `internal`,
 * which keeps path and message out of what clients see.
 */
export function startError({ name, module }: ModuleSetting, why: string, thrown = ''): DarkroomError {
  if (thrown !== '') return new DarkroomError('internal', 'executor.start', `${name} is ${module}: ${why}: ${thrown}`);
  const shown = isAbsolute(module) ? `…/${basename(module)}` : module;
  return new DarkroomError('model_unsupported', 'executor.start', `${name} is ${shown}: ${why}`);
}
