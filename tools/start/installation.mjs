import { existsSync } from 'node:fs';
import { join } from 'node:path';

/** Directory of the checkout, of the installed package, or `/app` in the image. */
export const root = join(import.meta.dirname, '../..');

/** npm never packs a lock file, so only a checkout has one. A checkout is built before it starts. */
export const isCheckout = existsSync(join(root, 'package-lock.json'));

/** The command that starts the system, for messages. */
export const startCommand = isCheckout ? 'npm start' : 'npx darkroom';
