import { readdirSync } from 'node:fs';

/** Lists this machine's NVIDIA GPUs by CUDA index: there is one `/dev/nvidia<n>` per GPU. */
export function listGpus(deviceDirectory = '/dev'): string[] {
  const gpus = readdirSync(deviceDirectory).filter((name) => /^nvidia\d+$/.test(name));
  // A container given the third GPU of a machine sees it as nvidia2, and CUDA in it counts from 0.
  return gpus.map((_name, index) => String(index));
}
