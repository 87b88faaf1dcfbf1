// Adds to package-lock.json the optional platform packages that npm omitted. npm drops an optional package from the
// lock file if its registry does not have it (mirrors often carry only their own platform's). Then `npm ci` refuses the
// lock file, and other platforms miss their binaries. Run it after every change of the lock file.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const file = join(import.meta.dirname, '../package-lock.json');
const systems = ['aix', 'android', 'darwin', 'freebsd', 'linux', 'netbsd', 'openbsd', 'openharmony', 'sunos', 'win32'];
const processors = ['arm64', 'arm', 'ia32', 'loong64', 'mips64el', 'ppc64', 'riscv64', 's390x', 'wasm32', 'x64'];

const lock = JSON.parse(readFileSync(file, 'utf8'));
const added = [];
for (const parent of Object.values(lock.packages))
  for (const [name, version] of Object.entries(parent.optionalDependencies ?? {})) {
    const key = `node_modules/${name}`;
    const platform = platformOf(name);
    if (lock.packages[key] || !platform || !/^\d/.test(version)) continue;
    lock.packages[key] = { version, ...platform, ...(parent.dev && { dev: true }), optional: true };
    added.push(`${name}@${version}`);
  }
lock.packages = Object.fromEntries(Object.entries(lock.packages).toSorted(([left], [right]) => compare(left, right)));
writeFileSync(file, `${JSON.stringify(lock, null, 2)}\n`);
console.log(added.length > 0 ? `added:\n  ${added.join('\n  ')}` : 'nothing was missing');

/**
 * Returns the fields that make npm skip a package on other platforms, from a name such as `binding-linux-arm64-musl`.
 */
function platformOf(name) {
  const words = name.split(/[/-]/);
  const os = systems.find((system) => words.some((word) => word === system || word === `${system}musl`));
  const cpu = processors.find((processor) => words.includes(processor));
  if (!os || !cpu) return undefined;
  const libc = words.some((word) => word.includes('musl'))
    ? 'musl'
    : words.some((word) => word.startsWith('gnu'))
      ? 'glibc'
      : undefined;
  return { cpu: [cpu], os: [os], ...(os === 'linux' && libc && { libc: [libc] }) };
}

/** Sorts like npm, so that npm's next change of the file has a small diff. */
function compare(left, right) {
  return left.localeCompare(right, 'en');
}
