/**
 * What decoding a large picture takes, in one go and in pieces: `node bench/decode-memory.mjs [<model directory>] [<side>]`,
 * in a built checkout. Each way has a process of its own, and its memory is the most that process ever had.
 */
import { execFileSync } from 'node:child_process';
import { readModelDirectory } from '@darkroom/diffusion/model-files';
import { loadOnnxSession } from '@darkroom/runtime';
import { VaeDecoder } from '../libs/diffusion/dist/pipelines/vae-decoder.js';

const [directory = 'models/emoji-sd', sideText = '2048', way] = process.argv.slice(2);
const side = Number(sideText);
const load = (file) => loadOnnxSession({ file, threads: 2 });

if (way === undefined) {
  for (const each of ['in one go', 'in pieces']) {
    const result = execFileSync(process.execPath, [import.meta.filename, directory, sideText, each], {
      encoding: 'utf8',
    });
    process.stdout.write(result);
  }
} else {
  const { graphs, latents } = await readModelDirectory(directory);
  const dims = [latents.channels, side / latents.factor, side / latents.factor];
  const decoder = new VaeDecoder({
    file: 'vae_decoder',
    path: graphs.vaeDecoder,
    session: await load(graphs.vaeDecoder),
    loadPart: load,
    factor: latents.factor,
    wholePixels: way === 'in one go' ? Infinity : 1024 ** 2 - 1,
  });
  if (way === 'in pieces') await decoder.tryPieces([latents.channels, 16, 16]);
  if (decoder.remark !== undefined) throw new Error(decoder.remark);
  const noise = new Float32Array(dims[0] * dims[1] * dims[2]).map(() => 4 * Math.random() - 2);
  const startedAt = process.cpuUsage();
  await decoder.decode(noise, dims);
  const { user, system } = process.cpuUsage(startedAt);
  const peak = Math.round((process.resourceUsage().maxRSS * 1024) / 1e6);
  console.log(`${side}x${side} ${way}: ${peak} MB at most, ${((user + system) / 1e6).toFixed(1)} s of a CPU`);
}
