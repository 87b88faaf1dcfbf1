// `npm run test:bare`: `npm start` and `npm test` on a machine without packages, in a container with only Node and npm,
// as a user and as root. Needs Docker, and in containers the registries of Debian and npm.
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { BareContainer } from './test/bare-container.mjs';
import { announce } from './test/counts.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const total = { passed: 0, failed: 0 };
const container = await BareContainer.start(root);

/** Runs one test of this script; it fails if `run` throws. */
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

/** Adds the counts of a test run in the container. Throws, which fails the test, if the run failed or was empty. */
function add({ code, passed = 0, failed = 0 }) {
  total.passed += passed;
  total.failed += failed;
  if (code !== 0 || passed === 0) throw new Error(`exit code ${code}, ${passed} passed, ${failed} failed`);
}

try {
  const [user, superuser] = [await container.checkout('node'), await container.checkout('root')];
  const advised = [];
  await test('npm start as a user names the missing package', async () => {
    const { code, output } = await user.run(['npm', 'start']);
    if (code === 0 || !output.includes('sudo apt-get install redis-server')) throw new Error(`output: ${output}`);
  });
  await test('npm test as a user names the missing packages', async () => {
    const { code, output } = await user.run(['npm', 'test']);
    const packages = /sudo apt-get install --no-install-recommends (?<names>.*)/.exec(output)?.groups.names;
    if (code === 0 || packages === undefined) throw new Error(`output: ${output}`);
    advised.push(...packages.split(' '));
  });
  await test('npm start as root returns an image', () => superuser.startToImage());
  await test('npm test as root passes', async () => add(await superuser.test([])));
  console.log(`bare: installed as root: ${container.installed.join(', ')}`);
  await test('the packages named to a user are those that root installed', async () => {
    const isSame =
      container.installed.length === advised.length && advised.every((name) => container.installed.includes(name));
    if (!isSame) throw new Error(`${advised.join(' ')} is not ${container.installed.join(' ')}`);
  });
  await test('npm start as a user returns an image once the packages are installed', () => user.startToImage());
  await test('npm test as a user passes once the packages are installed', async () =>
    add(await user.test(['test/e2e/images', 'test/e2e/page-access'])));
} finally {
  await container.remove();
}
announce(total);
