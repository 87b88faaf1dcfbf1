import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { compileFunction } from 'node:vm';
import type * as Xgrammar from '@mlc-ai/web-xgrammar';

/** The library, loaded: an instance of its WebAssembly of its own. */
export interface LoadedXgrammar {
  readonly library: typeof Xgrammar;
  /** What it said of the last failure, without where in its sources; empty if it said nothing. */
  takeFailure: () => string;
}

const require = createRequire(import.meta.url);

/**
 * Loads xgrammar. A failure aborts an instance for good, so each call makes another.
 *
 * The package calls itself a module, but is the CommonJS that Node then refuses to import: it is compiled as what it is. Its
 * console is ours, since it prints what it cannot read, and that is what users sent. It sees no process, and so takes the way
 * of browsers, which needs nothing that is not here; Node's begins with an `import`, which code that is compiled so cannot do.
 */
export function loadXgrammar(): LoadedXgrammar {
  const file = require.resolve('@mlc-ai/web-xgrammar');
  let failure = '';
  const listen = (...words: unknown[]) => {
    const text = words.join(' ');
    failure = /^\[FATAL\] \S+:\d+: (.*)$/su.exec(text)?.[1] ?? failure;
  };
  const silent = { log: listen, info: listen, warn: listen, error: listen, debug: listen };
  const names = ['module', 'exports', 'require', '__filename', '__dirname', 'console', 'process'];
  const module = { exports: {} };
  const run = compileFunction(readFileSync(file, 'utf8'), names, { filename: file });
  Reflect.apply(run, undefined, [module, module.exports, require, file, '', silent, undefined]);
  return {
    library: module.exports as typeof Xgrammar,
    takeFailure() {
      const taken = failure;
      failure = '';
      return taken;
    },
  };
}
