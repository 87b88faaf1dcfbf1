import type { Device } from '../model/device.ts';

/** A device that a part of a model could not be loaded on. */
export interface DeviceRefusal {
  readonly device: Device;
  /** The runtime's own words: for the operator, since they name files. */
  readonly reason: string;
}

/** Nodes of a graph by where they ran, such as `{ webgpu: 239, cpu: 21 }`. */
export type NodeCounts = Readonly<Record<string, number>>;

/** A part of a loaded model, and what it runs on. */
export interface PipelineComponent {
  /** Its folder, such as `unet`. */
  readonly part: string;
  readonly device: Device;
  /** Devices that were preferred and did not take it. */
  readonly refusals: readonly DeviceRefusal[];
  /** Where its nodes really ran, on a device that leaves some to the CPU. */
  readonly nodes?: NodeCounts;
  /** What else an operator should know of it. */
  readonly remark?: string;
}
