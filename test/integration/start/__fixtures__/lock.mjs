// Takes the lock named by its argument and holds it until it is stopped.
import { takeInstanceLock } from '../../../../tools/start/instance-lock.mjs';

const release = takeInstanceLock(process.argv[2]);
process.on('SIGTERM', () => {
  release();
  process.exit(0);
});
setInterval(() => {}, 1e6);
console.log('locked');
