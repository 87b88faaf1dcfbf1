import { type SchedulerConfig, type SchedulerName, schedulerNames } from './scheduler-config.ts';

/**
 * Returns the reason why a scheduler cannot serve a model with this config: the model is of another kind, or the
 * diffusers class lacks an option and would ignore it, or would compute NaN.
 *
 * @returns undefined if it can.
 */
export function schedulerMisfit(name: SchedulerName, config: SchedulerConfig): string | undefined {
  const { isFlow, predictionType, thresholding, solverOrder, originalInferenceSteps, numTrainTimesteps } = config;
  const isFlowPrediction = predictionType === 'flow_prediction';
  const misfits: readonly (readonly [isOne: boolean, misfit: string])[] = [
    [name === 'flow_match_euler' && !isFlow, `${name} cannot serve a model that is not a flow model`],
    [
      name !== 'flow_match_euler' && name !== 'unipc' && isFlow,
      `${name} cannot serve a flow model (use_flow_sigmas true)`,
    ],
    [
      name === 'unipc' && solverOrder > 3,
      `solver_order ${solverOrder} is not supported by unipc; supported is 1, 2, 3`,
    ],
    [!isFlow && isFlowPrediction, 'prediction_type "flow_prediction" needs use_flow_sigmas true'],
    [
      isFlow && !isFlowPrediction,
      `prediction_type "${predictionType}" is not supported with flow sigmas; supported is flow_prediction`,
    ],
    [
      name === 'lcm' && originalInferenceSteps > numTrainTimesteps,
      `original_inference_steps ${originalInferenceSteps} are more than num_train_timesteps ${numTrainTimesteps}`,
    ],
    [name === 'pndm' && config.rescaleBetasZeroSnr, 'rescale_betas_zero_snr true is not supported by pndm'],
    [name === 'pndm' && predictionType === 'sample', 'prediction_type "sample" is not supported by pndm'],
    [
      name.startsWith('dpmpp_2m') && solverOrder !== 2,
      `solver_order ${solverOrder} is not supported by ${name}; supported is 2`,
    ],
    [thresholding && (name === 'pndm' || name.includes('euler')), `thresholding true is not supported by ${name}`],
    ...(name === 'unipc' ? uniPcMisfits(config) : []),
  ];
  return misfits.find(([isOne]) => isOne)?.[1];
}

/** Returns the schedulers that can serve a model, in the order of their names. */
export function fittingSchedulers(config: SchedulerConfig): SchedulerName[] {
  return schedulerNames.filter((name) => schedulerMisfit(name, config) === undefined);
}

function uniPcMisfits(config: SchedulerConfig): [isOne: boolean, misfit: string][] {
  const { isFlow, predictX0, finalSigmasType, sigmaSchedule, solverOrder } = config;
  const endsAtZero = finalSigmasType === 'zero';
  return [
    [isFlow && sigmaSchedule !== null, `use_${sigmaSchedule}_sigmas with flow sigmas is not supported by unipc`],
    [
      // In diffusers the last two sigmas are equal, and the step between them is 0/0.
      !endsAtZero && (isFlow || sigmaSchedule !== null),
      'final_sigmas_type "sigma_min" is not supported by unipc with flow sigmas or a sigma schedule',
    ],
    [
      endsAtZero && !config.lowerOrderFinal && solverOrder > 1,
      'lower_order_final false is not supported by unipc with final_sigmas_type "zero": the last step would be 0/0',
    ],
    [!predictX0 && endsAtZero, 'predict_x0 false is not supported by unipc with final_sigmas_type "zero"'],
    [!predictX0 && config.thresholding, 'thresholding true is not supported by unipc with predict_x0 false'],
  ];
}
