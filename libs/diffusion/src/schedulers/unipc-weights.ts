/**
 * A step of UniPC is a weighted sum of latents and earlier model outputs; these are the weights.
 * Source: Zhao et al. 2023, "UniPC", equations 3, 9 and 11; diffusers `multistep_uni_p_bh_update` and
 * `multistep_uni_c_bh_update`.
 */

import type { SchedulerConfig } from './config/scheduler-config.ts';
import type { NoiseLevels } from './scheduler.ts';

export interface UniPcWeights {
  /** Of the latents that the step goes out from. */
  readonly ofSample: number;
  /** Of the converted model outputs there and before, the newest first. */
  readonly ofOutputs: readonly number[];
  /** Of the converted model output at the step's end, which a corrector has. */
  readonly ofTarget: number;
}

export interface UniPcWeightsOptions {
  readonly config: Pick<SchedulerConfig, 'predictX0' | 'solverType'>;
  /** At each step of the run, and behind the last. */
  readonly levels: readonly NoiseLevels[];
  /** The index in `levels` that the step leads to, from the one before. */
  readonly to: number;
  /** How many earlier outputs it goes by, 1 … 3. */
  readonly order: number;
  /** Whether the model's output at the step's end is known. */
  readonly isCorrector: boolean;
}

/** Computes the weights of one predictor or corrector step. */
export function uniPcWeights({ config, levels, to, order, isCorrector }: UniPcWeightsOptions): UniPcWeights {
  const { predictX0 } = config;
  const isBh1 = config.solverType === 'bh1';
  const from = levels[to - 1]!;
  const target = levels[to]!;
  const start = logSnr(from);
  const step = logSnr(target) - start;
  const signedStep = predictX0 ? -step : step;
  const growth = Math.expm1(signedStep);
  const scale = predictX0 ? target.signal : target.noise;
  const ofSample = predictX0 ? target.noise / from.noise : target.signal / from.signal;
  const ofOutputs = [-scale * growth];
  // Without a second output there is no term in B(h), which may be infinite at the last step.
  if (order === 1 && !isCorrector) return { ofSample, ofOutputs, ofTarget: 0 };

  // Where the other outputs lie, in steps; each comes in by its difference from the newest, `from`'s.
  const nodes = Array.from({ length: order - 1 }, (_, age) => (logSnr(levels[to - 2 - age]!) - start) / step);
  if (isCorrector) nodes.push(1);
  const shares = sharesOf(nodes, signedStep, isBh1);
  const factor = -scale * (isBh1 ? signedStep : growth);
  for (const [index, node] of nodes.entries()) {
    const weight = (factor * shares[index]!) / node;
    ofOutputs[0]! -= weight;
    ofOutputs.push(weight);
  }
  const ofTarget = isCorrector ? ofOutputs.pop()! : 0;
  return { ofSample, ofOutputs, ofTarget };
}

/** λ = log(signal / noise), in which UniPC measures its steps. */
function logSnr({ signal, noise }: NoiseLevels): number {
  return Math.log(signal) - Math.log(noise);
}

/** The ρ of equation 9: Σ ρ·node^k is what the exact integral of the polynomial of degree k is, for each k. */
function sharesOf(nodes: readonly number[], signedStep: number, isBh1: boolean): number[] {
  // Where there is one node, its share is ½ and not quite the integral (diffusers, "a simplified version").
  if (nodes.length === 1) return [0.5];
  const scale = isBh1 ? signedStep : Math.expm1(signedStep);
  const integrals: number[] = [];
  let phi = Math.expm1(signedStep) / signedStep - 1;
  let factorial = 1;
  for (let degree = 1; degree <= nodes.length; degree++) {
    integrals.push((phi * factorial) / scale);
    factorial *= degree + 1;
    phi = phi / signedStep - 1 / factorial;
  }
  return solveVandermonde(nodes, integrals);
}

/** Solves Σ x[j]·nodes[j]^k = values[k] for all k (Golub and Van Loan, "Matrix Computations", Algorithm 4.6.2). */
function solveVandermonde(nodes: readonly number[], values: readonly number[]): number[] {
  const last = nodes.length - 1;
  const solution = [...values];
  for (let k = 0; k < last; k++) {
    for (let index = last; index > k; index--) solution[index]! -= nodes[k]! * solution[index - 1]!;
  }
  for (let k = last - 1; k >= 0; k--) {
    for (let index = k + 1; index <= last; index++) solution[index]! /= nodes[index]! - nodes[index - k - 1]!;
    for (let index = k; index < last; index++) solution[index]! -= solution[index + 1]!;
  }
  return solution;
}
