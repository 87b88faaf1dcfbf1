// A fake part: node part.mjs <name> [behaviour]. Says on standard output what happens to it.
import { spawn } from 'node:child_process';

const [name, behaviour] = process.argv.slice(2);
if (behaviour === 'dies') process.exit(7);
if (behaviour === 'has-children') {
  // Lives for ever and holds our standard output, so that a test sees when it is gone.
  spawn(process.execPath, ['-e', 'setInterval(() => {}, 1e6)'], { stdio: 'inherit' });
}
process.on('SIGTERM', () => {
  console.log(`${name} got SIGTERM`);
  if (behaviour !== 'stubborn') process.exit(0);
});
process.on('disconnect', () => process.exit(0));
process.send('ready');
console.log(`${name} started as ${process.pid}`);
