// Builds llama.cpp's own server for this CPU, and the program that makes files of 8 bits, from the sources that PyPI's llama-cpp-python
// carries, for the bench beside it: `node tools/build-llama-server.mjs`. (Tests take the server of PyPI's xllamacpp, which is built for
// any CPU with AVX2.) Needs python3 with pip, cmake, ninja and a C++ compiler, and 10 minutes of two cores. What it makes stays in
// .darkroom.
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
    // GCC 12 takes AMX's configuration for 8 bytes that are read, and drops what is stored behind them: a crash at the first product.
    const whole = 'CMAKE_CXX_FLAGS=-fno-tree-dse -fno-dse';
    const options = ['CMAKE_BUILD_TYPE=Release', 'LLAMA_BUILD_SERVER=ON', whole, ...off.map((name) => `${name}=OFF`)];
    run('cmake', '-G', 'Ninja', '-S', llama, '-B', 'build', ...options.map((option) => `-D${option}`));
    run('ninja', '-C', 'build', ...programs);
    mkdirSync(directory, { recursive: true });
    for (const [at, path] of paths.entries()) {
      // Under its name only when it is whole.
      execFileSync('cp', [join(scratch, 'build/bin', programs[at]), `${path}.part`]);
      renameSync(`${path}.part`, path);
    }
  } finally {
    rmSync(scratch, { recursive: true });
  }
}
