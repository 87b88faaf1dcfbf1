import { readdirSync } from 'node:fs';

/** The GPUs that NVIDIA's driver shows here, by CUDA's indexes: there is one `/dev/nvidia<n>` for each. */
export function listGpus(deviceDirectory = '/dev'): string[] {
  const gpus = readdirSync(deviceDirectory).filter((name) => /^nvidia\d+$/.test(name));
  // A container that gets the third GPU of a machine sees it as nvidia2, and CUDA in it counts from 0.
  return gpus.map((_name, index) => String(index));
}
