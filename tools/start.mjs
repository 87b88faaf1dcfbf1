#!/usr/bin/env node
// Runs the system: `npm start` in a checkout, which first installs and builds what is missing, and `npx darkroom` where
// the package is installed. Plain Node without imports, since a fresh clone has no packages; loads tools/start/ only
// after the check of the Node version.
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  console.error(`darkroom: this is Node ${process.versions.node}; 20.19 or newer is needed (https://nodejs.org).`);
  process.exit(1);
}
const { start } = await import('./start/start.mjs');
await start();
