// `npm run pack:server`: writes the package @darkroom/server to .darkroom/package and packs it. The package holds the
// built apps, the launcher, the bundled models, and our libraries as bundled dependencies; npm installs the rest.
// Run after a build.
import { cpSync, existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { lightApps, models } from './start/parts.mjs';
import { root } from './start/installation.mjs';

const apps = [...lightApps, 'worker'];
const target = join(root, '.darkroom/package');

const manifest = readManifest('.');
const external = {};
const libraries = new Set();
for (const app of apps) addDependencies(`apps/${app}`);

rmSync(target, { recursive: true, force: true });
for (const app of apps) copyBuilt(`apps/${app}`, `apps/${app}`);
copy('apps/page/dist', 'apps/page/dist');
for (const name of libraries) copyBuilt(`libs/${name}`, `node_modules/@darkroom/${name}`);
for (const file of ['LICENSE', 'README.md', 'tools/start', 'tools/start.mjs']) copy(file, file);
for (const model of models) copy(`models/${model}`, `models/${model}`);
writeFileSync(join(target, 'package.json'), `${JSON.stringify(packageManifest(), undefined, 2)}\n`);

function packageManifest() {
  const { version, description, license, type, engines } = manifest;
  const own = [...libraries].map((name) => `@darkroom/${name}`);
  return {
    name: '@darkroom/server',
    version,
    description,
    license,
    type,
    bin: { darkroom: 'tools/start.mjs' },
    dependencies: { ...Object.fromEntries(own.map((name) => [name, version])), ...external },
    bundleDependencies: own,
    engines,
    publishConfig: { access: 'public' },
  };
}

/** Collects the libraries and external packages that a package of ours depends on, directly or not. */
function addDependencies(directory) {
  for (const [name, range] of Object.entries(readManifest(directory).dependencies ?? {})) {
    if (!name.startsWith('@darkroom/')) {
      if ((external[name] ??= range) !== range)
        throw new Error(`${directory}/package.json has ${name} ${range}, another package of ours ${external[name]}`);
      continue;
    }
    const library = name.slice('@darkroom/'.length);
    if (libraries.has(library)) continue;
    libraries.add(library);
    addDependencies(`libs/${library}`);
  }
}

/** Copies the runtime files of a package: compiled code, Lua scripts, WebAssembly and Python. */
function copyBuilt(from, to) {
  if (!existsSync(join(root, from, 'dist'))) throw new Error(`${from} is not built; run npm run build first`);
  copy(`${from}/package.json`, `${to}/package.json`);
  copy(`${from}/dist`, `${to}/dist`, /\.(?:js|mjs)$/);
  copy(`${from}/src`, `${to}/src`, /\.(?:lua|wasm)$/);
  copy(`${from}/python/darkroom_engine`, `${to}/python/darkroom_engine`, /\.py$|py\.typed$/);
}

/** Copies a file, or those files of a directory whose names match; nothing if there is no such directory. */
function copy(from, to, pattern = /./) {
  const filter = (path) => statSync(path).isDirectory() || pattern.test(path);
  if (existsSync(join(root, from))) cpSync(join(root, from), join(target, to), { recursive: true, filter });
}

function readManifest(directory) {
  return JSON.parse(readFileSync(join(root, directory, 'package.json'), 'utf8'));
}
