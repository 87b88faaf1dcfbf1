// Builds stable-diffusion.cpp's server for this CPU: `node tools/build-sd-server.mjs`. Source: PyPI's
// stable-diffusion-cpp-python. Needs python3 with pip, cmake, ninja and a C++ compiler; takes 4 minutes on two cores.
// Stores the program in .darkroom.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const version = '0.4.7';
const directory = join(import.meta.dirname, `../.darkroom/sd-server-${version}`);
const program = join(directory, 'sd-server');

if (!existsSync(program)) build();
console.log(program);

function build() {
  const scratch = mkdtempSync(join(tmpdir(), 'darkroom-sd-'));
  const run = (command, ...words) => execFileSync(command, words, { cwd: scratch, stdio: 'inherit' });
  try {
    const sources = ['--no-deps', '--no-binary', 'stable-diffusion-cpp-python'];
    const requirement = `stable-diffusion-cpp-python==${version}`;
    run('python3', '-m', 'pip', 'download', '--quiet', '--disable-pip-version-check', ...sources, requirement);
    run(
      'tar',
      'xzf',
      readdirSync(scratch).find((name) => name.endsWith('.tar.gz')),
    );
    const source = join(scratch, `stable_diffusion_cpp_python-${version}`, 'vendor/stable-diffusion.cpp');
    const off = ['BUILD_SHARED_LIBS', 'SD_SERVER_BUILD_FRONTEND', 'SD_WEBM', 'SD_WEBP'];
    const options = ['CMAKE_BUILD_TYPE=Release', ...off.map((name) => `${name}=OFF`)];
    run('cmake', '-G', 'Ninja', '-S', source, '-B', 'build', ...options.map((option) => `-D${option}`));
    run('ninja', '-C', 'build', 'sd-server');
    mkdirSync(directory, { recursive: true });
    // Rename only after the copy is complete.
    execFileSync('cp', [join(scratch, 'build/bin/sd-server'), `${program}.part`]);
    renameSync(`${program}.part`, program);
  } finally {
    rmSync(scratch, { recursive: true });
  }
}
