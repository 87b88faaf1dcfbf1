// `npm start`: sets up everything that is missing and runs the whole system. Plain Node, because on a fresh clone
// nothing is installed yet; the work is in tools/start/, loaded only once this Node is known to understand it.
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  console.error(`darkroom: this is Node ${process.versions.node}; 20.19 or newer is needed (https://nodejs.org).`);
  process.exit(1);
}
const { start } = await import('./start/start.mjs');
await start();
