// Writes docs/configuration.md from the settings table of libs/config (build first).
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { configurationDocument } from '@darkroom/config';

writeFileSync(join(import.meta.dirname, '../docs/configuration.md'), configurationDocument());
