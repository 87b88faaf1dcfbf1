// Finds folder cycles inside our packages, a part of `npm run check`: no folder may import a folder that imports it,
// directly or through others.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

const importPattern = /\bfrom '(?<from>\.[^']+)'|\bimport\('(?<dynamic>\.[^']+)'\)|^import '(?<bare>\.[^']+)'/gm;

/** Tests and their helpers, which may import anything, and the list of a package's exports. */
const ignored = /\.test\.tsx?$|\/(?:testing|__fixtures__)\/|^src\/index\.ts$/;

/** Returns the imports between the folders of a package: folder → folder → an import that is an example. */
function folderImports(root) {
  const imports = new Map();
  for (const name of readdirSync(path.join(root, 'src'), { recursive: true })) {
    const file = path.join('src', name);
    if (!/\.tsx?$/.test(file) || ignored.test(file)) continue;
    const folder = path.dirname(file);
    for (const { groups } of readFileSync(path.join(root, file), 'utf8').matchAll(importPattern)) {
      const target = path.join(folder, groups.from ?? groups.dynamic ?? groups.bare);
      if (path.dirname(target) === folder) continue;
      if (!imports.has(folder)) imports.set(folder, new Map());
      imports.get(folder).set(path.dirname(target), `${path.join(root, file)} imports ${path.join(root, target)}`);
    }
  }
  return imports;
}

/** Returns the shortest cycle through a folder as a list of its imports; undefined if there is none. */
function cycleThrough(start, imports) {
  const paths = [{ folder: start, steps: [] }];
  const seen = new Set();
  for (const { folder, steps } of paths) {
    for (const [next, example] of imports.get(folder) ?? []) {
      if (next === start) return [...steps, example];
      if (seen.has(next)) continue;
      seen.add(next);
      paths.push({ folder: next, steps: [...steps, example] });
    }
  }
  return undefined;
}

const packages = ['libs', 'apps'].flatMap((group) =>
  existsSync(group) ? readdirSync(group).map((name) => `${group}/${name}`) : [],
);
for (const root of packages) {
  if (!existsSync(path.join(root, 'src'))) continue;
  const imports = folderImports(root);
  for (const folder of imports.keys()) {
    const cycle = cycleThrough(folder, imports);
    if (cycle === undefined) continue;
    process.exitCode = 1;
    console.error([`${root}/${folder} imports itself through other folders:`, ...cycle].join('\n  '));
  }
}
