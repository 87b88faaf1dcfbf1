// A fake part: node part.mjs <name> [behaviour]. Prints its start and its signals.
import { spawn } from 'node:child_process';

const [name, behaviour] = process.argv.slice(2);
if (behaviour === 'dies') process.exit(7);
if (behaviour === 'has-children') {
  // Runs forever and keeps standard output open, so that a test notices when it ends.
  spawn(process.execPath, ['-e', 'setInterval(() => {}, 1e6)'], { stdio: 'inherit' });
}
process.on('SIGTERM', () => {
  console.log(`${name} got SIGTERM`);
  if (behaviour !== 'stubborn') process.exit(0);
});
process.on('disconnect', () => process.exit(0));
process.send('ready');
console.log(`${name} started as ${process.pid}`);
