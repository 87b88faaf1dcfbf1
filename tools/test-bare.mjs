// `npm run test:bare`: the two commands of README where nothing was ever installed, in a container that has Node, npm and
// nothing else; as a user without rights and as root. Needs Docker, and inside of containers the registries of Debian and npm.
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { BareContainer } from './test/bare-container.mjs';
import { announce } from './test/counts.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const total = { passed: 0, failed: 0 };
const container = await BareContainer.start(root);

/** One of our own tests; what it throws is why it failed. */
async function test(name, run) {
  try {
    await run();
    total.passed++;
    console.log(`bare: ${name}: ok`);
  } catch (error) {
    total.failed++;
    console.log(`bare: ${name}: FAILED: ${error.message}`);
  }
}

/** Adds what the tests in the container count, which is one more test of ours: it may not be red, and not be empty. */
function add({ code, passed = 0, failed = 0 }) {
  total.passed += passed;
  total.failed += failed;
  if (code !== 0 || passed === 0) throw new Error(`exit code ${code}, ${passed} passed, ${failed} failed`);
}

try {
  const [user, superuser] = [await container.checkout('node'), await container.checkout('root')];
  const advised = [];
  await test('npm start, as a user, says which package it wants', async () => {
    const { code, output } = await user.run(['npm', 'start']);
    if (code === 0 || !output.includes('sudo apt-get install redis-server')) throw new Error(`it said: ${output}`);
  });
  await test('npm test, as a user, says which packages it wants', async () => {
    const { code, output } = await user.run(['npm', 'test']);
    const packages = /sudo apt-get install --no-install-recommends (?<names>.*)/.exec(output)?.groups.names;
    if (code === 0 || packages === undefined) throw new Error(`it said: ${output}`);
    advised.push(...packages.split(' '));
  });
  await test('npm start, as root, to a picture', () => superuser.startToPicture());
  await test('npm test, as root', async () => add(await superuser.test([])));
  console.log(`bare: installed as root: ${container.installed.join(', ')}`);
  await test('what a user was told to install is what root has installed', async () => {
    const isSame =
      container.installed.length === advised.length && advised.every((name) => container.installed.includes(name));
    if (!isSame) throw new Error(`${advised.join(' ')} is not ${container.installed.join(' ')}`);
  });
  await test('npm start, as a user on a machine that has the packages, to a picture', () => user.startToPicture());
  await test('npm test, as that user', async () => add(await user.test(['test/e2e/pictures', 'test/e2e/page-access'])));
} finally {
  await container.remove();
}
announce(total);
