/**
 * Decodes one large image in its own process and prints the peak memory and CPU time. Called by decode-memory.bench.ts:
 * `node bench/decode-memory.mjs <model directory> <side> whole|pieces`, in a built checkout.
 */
import { readModelDirectory } from '@darkroom/diffusion/model-files';
import { loadOnnxSession } from '@darkroom/runtime';
import { VaeDecoder } from '../libs/diffusion/dist/vae/vae-decoder.js';

const [directory, sideText, way] = process.argv.slice(2);
const side = Number(sideText);
const load = (file) => loadOnnxSession({ file, threads: 2 });

const { graphs, latents } = await readModelDirectory(directory);
const dims = [latents.channels, side / latents.factor, side / latents.factor];
const decoder = new VaeDecoder({
  file: 'vae_decoder',
  path: graphs.vaeDecoder,
  session: await load(graphs.vaeDecoder),
  loadPart: load,
  factor: latents.factor,
  wholePixels: way === 'whole' ? Infinity : 1024 ** 2 - 1,
});
if (way === 'pieces') await decoder.tryPieces([latents.channels, 16, 16]);
if (decoder.remark !== undefined) throw new Error(decoder.remark);
const noise = new Float32Array(dims[0] * dims[1] * dims[2]).map(() => 4 * Math.random() - 2);
const startedAt = process.cpuUsage();
await decoder.decode(noise, dims);
const { user, system } = process.cpuUsage(startedAt);
const peakMb = (process.resourceUsage().maxRSS * 1024) / 1e6;
console.log(JSON.stringify({ peakMb: Math.round(peakMb), cpuSeconds: (user + system) / 1e6 }));
