// A lint rule for imports between packages, loaded by .oxlintrc.json for `npm run check`. Tests and libs/testing may
// import anything.
import path from 'node:path';

/** Packages of ours that each package may import. A missing package is an error, so that none is forgotten. */
const mayImport = {
  'libs/core': [],
  'libs/kinds': ['core'],
  'libs/config': ['core'],
  'libs/service': ['core', 'config'],
  'libs/store': ['core'],
  'libs/batching': ['core'],
  'libs/runtime': ['core'],
  'libs/imaging': ['core', 'kinds'],
  'libs/diffusion': ['core', 'kinds', 'runtime', 'imaging'],
  'libs/language': ['core', 'imaging', 'kinds', 'runtime'],
  'libs/executor': ['core', 'kinds', 'imaging', 'diffusion', 'language'],
  'libs/client': [],
  'apps/api': ['core', 'kinds', 'config', 'service', 'store', 'imaging'],
  'apps/batch-former': ['core', 'config', 'service', 'store', 'batching'],
  'apps/janitor': ['core', 'config', 'service', 'store', 'batching'],
  'apps/webhook-sender': ['core', 'kinds', 'config', 'service', 'store'],
  'apps/worker': ['core', 'kinds', 'config', 'service', 'store', 'imaging', 'diffusion', 'language', 'executor'],
  'apps/model': ['core', 'config', 'diffusion', 'kinds', 'language'],
  'apps/page': ['client'],
};

/** External packages that only one of our packages may import. */
const wrappedBy = {
  ioredis: 'libs/store',
  bullmq: 'libs/store',
  'onnxruntime-node': 'libs/runtime',
  sharp: 'libs/imaging',
  'prom-client': 'libs/service',
  pino: 'libs/service',
};

/** Packages that also run in browsers and must not import Node modules. */
const forBrowsers = ['libs/client', 'apps/page'];

/** Returns the error of an import of `specifier` by a file of ours (path from the root), or undefined. */
function importError(file, specifier) {
  const home = packageOf(file);
  const allowed = mayImport[home];
  if (allowed === undefined) return `${home} is not in the table of tools/import-borders.mjs.`;
  if (specifier.startsWith('.')) {
    const target = packageOf(path.posix.join(path.posix.dirname(file), specifier));
    return target === home ? undefined : `${home} imports ${target} by a relative path; import it by its package name.`;
  }
  if (specifier.startsWith('node:'))
    return forBrowsers.includes(home) ? `${home} runs in browsers and must not import Node modules.` : undefined;
  const [scope, name] = specifier.split('/');
  if (scope === '@darkroom') {
    if (allowed.includes(name)) return undefined;
    return `${home} must not import ${name}, allowed: ${allowed.join(', ') || 'none'} (tools/import-borders.mjs).`;
  }
  const wrapper = Object.hasOwn(wrappedBy, scope) ? wrappedBy[scope] : home;
  return wrapper === home ? undefined : `Only ${wrapper} imports ${scope}.`;
}

function packageOf(file) {
  return file.split('/', 2).join('/');
}

const borders = {
  create(context) {
    const file = path.relative(context.cwd, context.filename).split(path.sep).join('/');
    const check = ({ source }) => {
      // Exports without a source are local, and a non-literal import names no package.
      if (typeof source?.value !== 'string') return;
      const message = importError(file, source.value);
      if (message !== undefined) context.report({ node: source, message });
    };
    return {
      ImportDeclaration: check,
      ExportNamedDeclaration: check,
      ExportAllDeclaration: check,
      ImportExpression: check,
    };
  },
};

export default { meta: { name: 'darkroom' }, rules: { 'import-borders': borders } };
