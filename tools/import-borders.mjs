// Who may import whom, as a rule of the lint in `npm run check`; .oxlintrc.json loads it. Tests and libs/testing may import
// anything.
import path from 'node:path';

/** Which packages of ours each package may import. A package that is not here is an error, so that none is forgotten. */
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
  'libs/language': ['core', 'kinds', 'runtime'],
  'libs/executor': ['core', 'kinds', 'diffusion', 'language'],
  'libs/client': [],
  'apps/api': ['core', 'kinds', 'config', 'service', 'store', 'imaging'],
  'apps/batch-former': ['core', 'config', 'service', 'store', 'batching'],
  'apps/janitor': ['core', 'config', 'service', 'store', 'batching'],
  'apps/webhook-sender': ['core', 'kinds', 'config', 'service', 'store'],
  'apps/worker': ['core', 'kinds', 'config', 'service', 'store', 'imaging', 'diffusion', 'language', 'executor'],
  'apps/model': ['core', 'config', 'diffusion', 'kinds', 'language'],
  'apps/page': ['client'],
};

/** Packages of others that one of ours wraps: only it imports them. */
const wrappedBy = {
  ioredis: 'libs/store',
  bullmq: 'libs/store',
  'onnxruntime-node': 'libs/runtime',
  sharp: 'libs/imaging',
  'prom-client': 'libs/service',
  pino: 'libs/service',
};

/** These run in browsers too, and import nothing of Node. */
const forBrowsers = ['libs/client', 'apps/page'];

/** What is wrong with an import of `specifier` by a file of ours, both paths from the root; undefined if nothing is. */
function borderCrossed(file, specifier) {
  const home = packageOf(file);
  const allowed = mayImport[home];
  if (allowed === undefined) return `${home} is not in the table of tools/import-borders.mjs.`;
  if (specifier.startsWith('.')) {
    const target = packageOf(path.posix.join(path.posix.dirname(file), specifier));
    return target === home ? undefined : `${home} reaches into ${target} by its path; import a package by its name.`;
  }
  if (specifier.startsWith('node:'))
    return forBrowsers.includes(home) ? `${home} runs in browsers, and imports nothing of Node.` : undefined;
  const [scope, name] = specifier.split('/');
  if (scope === '@darkroom') {
    if (allowed.includes(name)) return undefined;
    return `${home} may import ${allowed.join(', ') || 'nothing'} of ours, and this is ${name} (tools/import-borders.mjs).`;
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
      // Without one, an export is of the file itself; what is no literal names no package.
      if (typeof source?.value !== 'string') return;
      const message = borderCrossed(file, source.value);
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
