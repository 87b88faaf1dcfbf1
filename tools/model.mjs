// `npm run model`: installs and compiles what is missing, then runs apps/model.
import { join } from 'node:path';
import { compile, installDependencies } from './start/dependencies.mjs';
import { SetupError } from './start/say.mjs';

const root = join(import.meta.dirname, '..');
try {
  await installDependencies(root);
  await compile(root);
} catch (error) {
  console.error(error instanceof SetupError ? `darkroom: ${error.message}` : error);
  process.exit(1);
}
await import('../apps/model/dist/main.js');
