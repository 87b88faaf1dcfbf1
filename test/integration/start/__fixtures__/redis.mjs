// Provides a Redis as `npm start` does, sends it one command once it is ready and prints the reply:
// node redis.mjs <directory> <command…>
import { provideRedis } from '../../../../tools/start/redis.mjs';
import { askRedis } from '../../../../tools/start/redis-ping.mjs';
import { SetupError } from '../../../../tools/start/say.mjs';
import { System } from '../../../../tools/start/system.mjs';

const [directory, ...command] = process.argv.slice(2);
try {
  const { url, part } = await provideRedis({ directory, timing: { firstPauseMs: 10 } });
  const system = new System(part ? [part] : []);
  if (part) await system.startAndWait(part);
  console.log(`${part ? 'private' : 'named'} ${url} guarded by ${part?.pid}`);
  console.log(`reply ${await askRedis(url, command)}`);
  if (part) await system.untilStopped();
  process.exit(0);
} catch (error) {
  console.error(error instanceof SetupError ? error.message : error);
  process.exit(1);
}
