import type { Device } from '../model/device.ts';

/** A device on which a part of a model could not be loaded. */
export interface DeviceRefusal {
  readonly device: Device;
  /** Error text of the runtime: for operators only, since it names files. */
  readonly reason: string;
}

/** Number of graph nodes per device, such as `{ webgpu: 239, cpu: 21 }`. */
export type NodeCounts = Readonly<Record<string, number>>;

/** A loaded part of a model, and its device. */
export interface PipelineComponent {
  /** Its folder, such as `unet`. */
  readonly part: string;
  readonly device: Device;
  /** Preferred devices that failed to load it. */
  readonly refusals: readonly DeviceRefusal[];
  /** Nodes per device, on a device that leaves some nodes to the CPU. */
  readonly nodes?: NodeCounts;
  /** Further information for operators. */
  readonly remark?: string;
}
