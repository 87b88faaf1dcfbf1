import type { PredictionType } from './config/scheduler-config.ts';

/** x0 = ofSample · latents + ofOutput · model output. */
export interface OriginalWeights {
  readonly ofSample: number;
  readonly ofOutput: number;
}

/**
 * How the estimate of the finished latents follows from latents that are `signal`·x0 + `noise`·ε, whatever it is that
 * the model says: the noise, the finished latents, the velocity `signal`·ε − `noise`·x0 (Salimans and Ho 2022), or the
 * flow ε − x0, for which `signal` is 1 − `noise` (Lipman et al. 2022).
 */
export function originalWeights(predictionType: PredictionType, signal: number, noise: number): OriginalWeights {
  switch (predictionType) {
    case 'epsilon':
      return { ofSample: 1 / signal, ofOutput: -noise / signal };
    case 'v_prediction':
      return { ofSample: signal, ofOutput: -noise };
    case 'sample':
      return { ofSample: 0, ofOutput: 1 };
    case 'flow_prediction':
      return { ofSample: 1, ofOutput: -noise };
  }
}
