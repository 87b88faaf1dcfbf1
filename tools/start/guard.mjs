// Runs a program that knows nothing of our IPC channel (redis-server), and sees to it that it does not outlive us:
// node guard.mjs <program> <arguments…>. Ends as the program ends.
import { spawn } from 'node:child_process';

const [program, ...programArguments] = process.argv.slice(2);
const child = spawn(program, programArguments, { stdio: ['ignore', 'inherit', 'inherit'] });

// SIGTERM is what makes a redis-server save its data before it ends.
const stop = () => void child.kill('SIGTERM');
for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, stop);
process.on('disconnect', stop);

child.once('error', (error) => {
  console.error(`${program}: ${error.message}`);
  process.exit(127);
});
child.once('exit', (code) => process.exit(code ?? 1));
