// Takes the lock named by its argument and holds it until it is stopped.
import { takeInstanceLock } from '../../../../tools/start/instance-lock.mjs';

const giveBack = takeInstanceLock(process.argv[2]);
process.on('SIGTERM', () => {
  giveBack();
  process.exit(0);
});
setInterval(() => {}, 1e6);
console.log('locked');
