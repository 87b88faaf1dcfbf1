export const betaSchedules = ['linear', 'scaled_linear', 'squaredcos_cap_v2'] as const;
export const predictionTypes = ['epsilon', 'v_prediction', 'sample', 'flow_prediction'] as const;
export const timestepSpacings = ['leading', 'trailing', 'linspace'] as const;
export const sigmaSchedules = ['karras', 'exponential', 'beta'] as const;
export const finalSigmasTypes = ['zero', 'sigma_min'] as const;
export const timeShiftTypes = ['exponential', 'linear'] as const;

/** How betas run from start to end. */
export type BetaSchedule = (typeof betaSchedules)[number];
/** What the model's output is: the noise, the velocity (Salimans and Ho 2022), the finished latents, or the flow. */
export type PredictionType = (typeof predictionTypes)[number];
/** How the steps of a run are spread over the training timesteps (Lin et al. 2023, Table 2). */
export type TimestepSpacing = (typeof timestepSpacings)[number];
/** What a run's sigmas follow if not the timesteps. */
export type SigmaSchedule = (typeof sigmaSchedules)[number];
/** What the last sigma of a run is: 0, or the smallest of training. */
export type FinalSigmasType = (typeof finalSigmasTypes)[number];
/** How the size of a picture shifts the sigmas of a flow model. */
export type TimeShiftType = (typeof timeShiftTypes)[number];

/** Dynamic thresholding of x0 estimates, see `createDynamicThreshold`. */
export interface DynamicThresholding {
  readonly ratio: number;
  readonly maxValue: number;
}

/** The steps of a flow model, whose sigma runs from 1 (all noise) to 0. */
export interface FlowConfig {
  /** Above 1: more of the steps at high noise. Not read where the shift is dynamic. */
  readonly shift: number;
  /** Whether the pipeline gives a shift that goes with the size of the picture. */
  readonly useDynamicShifting: boolean;
  readonly timeShiftType: TimeShiftType;
  /** What pipelines make a dynamic shift of. */
  readonly baseShift: number;
  readonly maxShift: number;
  readonly baseImageSeqLen: number;
  readonly maxImageSeqLen: number;
  /** Stretch the steps so that this is the last sigma but the 0 at the end; null: do not. */
  readonly shiftTerminal: number | null;
}

/**
 * The fields of a diffusers `scheduler_config.json` that a scheduler here reads, in camelCase. A field the file does not
 * have is the default of the diffusers class that is asked for; null where the classes disagree about it. So one config
 * serves every scheduler, as `OtherScheduler.from_config(config)` does.
 */
export interface SchedulerConfig {
  /** Timesteps of training; the limit of inference steps. */
  readonly numTrainTimesteps: number;
  /** null: 0.0001, for `lcm` 0.00085. */
  readonly betaStart: number | null;
  /** null: 0.02, for `lcm` 0.012. */
  readonly betaEnd: number | null;
  /** null: linear, for `lcm` scaled_linear. */
  readonly betaSchedule: BetaSchedule | null;
  /** The betas themselves, one per training timestep, instead of a schedule. */
  readonly trainedBetas: readonly number[] | null;
  readonly predictionType: PredictionType;
  /** null: leading for `ddim` and `pndm`, linspace for the others. */
  readonly timestepSpacing: TimestepSpacing | null;
  /** Added to every timestep of leading spacing. */
  readonly stepsOffset: number;
  /** Shift the betas so that nothing of the picture is left at the last timestep (Lin et al. 2023). */
  readonly rescaleBetasZeroSnr: boolean;
  /** `ddim`, `pndm`: whether the last step ends at no noise at all, or at that of training timestep 0. null: not `pndm`. */
  readonly setAlphaToOne: boolean | null;
  /** `ddim`, `lcm`: whether x0 estimates are clipped to ± `clipSampleRange`. null: only in `ddim`. */
  readonly clipSample: boolean | null;
  /** `ddim`, `lcm`: see `clipSample`. */
  readonly clipSampleRange: number;
  /** `ddim`, `dpmpp_2m*`, `unipc`, `lcm`: takes the place of clipping; null: off. */
  readonly thresholding: DynamicThresholding | null;
  /** `pndm`: start with a multistep rule that grows, not with twelve model calls of Runge-Kutta. */
  readonly skipPrkSteps: boolean;
  /** `euler`, `dpmpp_2m*`, `unipc`, `flow_match_euler`; names that end in `_karras` do not read this. */
  readonly sigmaSchedule: SigmaSchedule | null;
  /** `euler`, `dpmpp_2m*`, `unipc`. */
  readonly finalSigmasType: FinalSigmasType;
  /** `dpmpp_2m*`: whether noise is added at each step, by which their default name is chosen. */
  readonly isSde: boolean;
  /** `dpmpp_2m*` (2 only), `unipc` (1 … 3). */
  readonly solverOrder: number;
  /** `dpmpp_2m*`: in runs of fewer than 15 steps, take the last step with the first-order solver. `unipc`: in any run. */
  readonly lowerOrderFinal: boolean;
  /** `dpmpp_2m*`: take the last step with the first-order solver in every run. */
  readonly eulerAtFinal: boolean;
  /** `dpmpp_2m*`: leave out the timesteps with log(√ᾱ / √(1 − ᾱ)) below this, for cosine schedules. */
  readonly lambdaMinClipped: number;
  /** `unipc`: B(h) is h (bh1) or e^h − 1 (bh2). */
  readonly solverType: 'bh1' | 'bh2';
  /** `unipc`: solve for x0, or for the noise. */
  readonly predictX0: boolean;
  /** `unipc`: steps, counted from 0, whose result is not corrected by the step after. */
  readonly disableCorrector: readonly number[];
  /** `lcm`: the steps of the solver it was distilled from, of which it takes some. */
  readonly originalInferenceSteps: number;
  /** `lcm`: how quickly the boundary condition fades with the timestep. */
  readonly timestepScaling: number;
  /** null: not a flow model. */
  readonly flow: FlowConfig | null;
}
