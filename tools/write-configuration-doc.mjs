// Writes docs/configuration.md from the table of settings in libs/config (build first).
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { configurationDocument } from '@darkroom/config';

writeFileSync(join(import.meta.dirname, '../docs/configuration.md'), configurationDocument());
