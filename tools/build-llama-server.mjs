// Builds llama.cpp's server and its quantizer for this CPU, for the benches: `node tools/build-llama-server.mjs`.
// Sources: PyPI's llama-cpp-python (tests use the AVX2 server of PyPI's xllamacpp). Needs python3 with pip, cmake,
// ninja and a C++ compiler; takes 10 minutes on two cores. Stores the programs in .darkroom.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const version = '0.3.36';
const directory = join(import.meta.dirname, `../.darkroom/llama-server-${version}`);
const programs = ['llama-server', 'llama-quantize'];
const paths = programs.map((name) => join(directory, name));

if (!paths.every((path) => existsSync(path))) build();
for (const path of paths) console.log(path);

function build() {
  const scratch = mkdtempSync(join(tmpdir(), 'darkroom-llama-'));
  const run = (command, ...words) => execFileSync(command, words, { cwd: scratch, stdio: 'inherit' });
  try {
    const sources = ['--no-deps', '--no-binary', 'llama-cpp-python', `llama-cpp-python==${version}`];
    run('python3', '-m', 'pip', 'download', '--quiet', '--disable-pip-version-check', ...sources);
    run(
      'tar',
      'xzf',
      readdirSync(scratch).find((name) => name.endsWith('.tar.gz')),
    );
    const llama = join(scratch, `llama_cpp_python-${version}`, 'vendor/llama.cpp');
    const off = ['BUILD_SHARED_LIBS', 'LLAMA_BUILD_TESTS', 'LLAMA_BUILD_EXAMPLES', 'LLAMA_BUILD_UI', 'LLAMA_OPENSSL'];
    // GCC 12 treats only 8 bytes of the AMX tile configuration as read and drops the other stores: the first product
    // crashes.
    const keepStores = 'CMAKE_CXX_FLAGS=-fno-tree-dse -fno-dse';
    const options = [
      'CMAKE_BUILD_TYPE=Release',
      'LLAMA_BUILD_SERVER=ON',
      keepStores,
      ...off.map((name) => `${name}=OFF`),
    ];
    run('cmake', '-G', 'Ninja', '-S', llama, '-B', 'build', ...options.map((option) => `-D${option}`));
    run('ninja', '-C', 'build', ...programs);
    mkdirSync(directory, { recursive: true });
    for (const [at, path] of paths.entries()) {
      // Rename only after the copy is complete.
      execFileSync('cp', [join(scratch, 'build/bin', programs[at]), `${path}.part`]);
      renameSync(`${path}.part`, path);
    }
  } finally {
    rmSync(scratch, { recursive: true });
  }
}
