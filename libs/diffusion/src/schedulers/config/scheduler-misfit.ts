import type { SchedulerConfig } from './scheduler-config.ts';
import { type SchedulerName, schedulerNames } from '../scheduler.ts';

/**
 * Why a scheduler cannot serve a model, by what its config says about it: the model is of another kind, or the diffusers
 * class has no such option and would leave it out, or would compute NaN.
 *
 * @returns undefined if it can.
 */
export function schedulerMisfit(name: SchedulerName, config: SchedulerConfig): string | undefined {
  if (name === 'flow_match_euler') return flowMatchEulerMisfit(config);
  if (name === 'unipc') return uniPcMisfit(config);
  if (config.flow !== null) return `${name} cannot serve a flow model (use_flow_sigmas true)`;
  if (config.predictionType === 'flow_prediction') return flowWithoutSigmas;
  if (name === 'lcm') return lcmMisfit(config);
  if (name === 'pndm') return pndmMisfit(config);
  if (name.startsWith('dpmpp_2m') && config.solverOrder !== 2) {
    return `solver_order ${config.solverOrder} is not supported by ${name}; supported is 2`;
  }
  return name.startsWith('euler') && config.thresholding !== null ? noThresholding(name) : undefined;
}

/** The schedulers that can serve a model, in the order of their names. */
export function fittingSchedulers(config: SchedulerConfig): SchedulerName[] {
  return schedulerNames.filter((name) => schedulerMisfit(name, config) === undefined);
}

const flowWithoutSigmas = 'prediction_type "flow_prediction" needs use_flow_sigmas true';

function noThresholding(name: SchedulerName): string {
  return `thresholding true is not supported by ${name}`;
}

function lcmMisfit({ originalInferenceSteps, numTrainTimesteps }: SchedulerConfig): string | undefined {
  if (originalInferenceSteps <= numTrainTimesteps) return undefined;
  return `original_inference_steps ${originalInferenceSteps} are more than num_train_timesteps ${numTrainTimesteps}`;
}

function pndmMisfit({ rescaleBetasZeroSnr, predictionType, thresholding }: SchedulerConfig): string | undefined {
  if (rescaleBetasZeroSnr) return 'rescale_betas_zero_snr true is not supported by pndm';
  if (predictionType === 'sample') return 'prediction_type "sample" is not supported by pndm';
  return thresholding === null ? undefined : noThresholding('pndm');
}

function flowMatchEulerMisfit({ flow, predictionType, thresholding }: SchedulerConfig): string | undefined {
  if (flow === null) return 'flow_match_euler cannot serve a model that is not a flow model';
  if (predictionType !== 'flow_prediction') return flowPrediction(predictionType);
  return thresholding === null ? undefined : noThresholding('flow_match_euler');
}

function flowPrediction(predictionType: string): string {
  return `prediction_type "${predictionType}" is not supported with flow sigmas; supported is flow_prediction`;
}

function uniPcMisfit(config: SchedulerConfig): string | undefined {
  const { flow, predictionType, predictX0, finalSigmasType, sigmaSchedule, solverOrder } = config;
  if (solverOrder > 3) return `solver_order ${solverOrder} is not supported by unipc; supported is 1, 2, 3`;
  if (flow === null && predictionType === 'flow_prediction') return flowWithoutSigmas;
  if (flow !== null && predictionType !== 'flow_prediction') return flowPrediction(predictionType);
  if (flow !== null && sigmaSchedule !== null)
    return `use_${sigmaSchedule}_sigmas with flow sigmas is not supported by unipc`;
  if (finalSigmasType === 'sigma_min' && (flow !== null || sigmaSchedule !== null)) {
    // The last two sigmas are equal in diffusers, and the step between them 0/0.
    return 'final_sigmas_type "sigma_min" is not supported by unipc with sigmas of their own';
  }
  if (finalSigmasType === 'zero' && !config.lowerOrderFinal && solverOrder > 1) {
    return 'lower_order_final false is not supported by unipc with final_sigmas_type "zero": the last step would be 0/0';
  }
  if (predictX0) return undefined;
  if (finalSigmasType === 'zero') return 'predict_x0 false is not supported by unipc with final_sigmas_type "zero"';
  if (config.thresholding !== null) return 'thresholding true is not supported by unipc with predict_x0 false';
  return undefined;
}
