import type { Device } from '@darkroom/runtime';

/** Where and how a pipeline's graphs run. */
export interface LoadPipelineOptions {
  device?: Device;
  /** CUDA's number of the device. */
  deviceId?: number;
  /** Threads of one model call. */
  threads?: number;
}
