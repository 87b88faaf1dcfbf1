import { expect, it } from 'vitest';
import { findScheduler } from './find-scheduler.ts';

const all = [
  'ddim',
  'pndm',
  'euler',
  'euler_ancestral',
  'dpmpp_2m',
  'dpmpp_2m_karras',
  'dpmpp_2m_sde',
  'dpmpp_2m_sde_karras',
  'unipc',
  'lcm',
  'flow_match_euler',
];

it('finds each scheduler by its own name', () => {
  expect(all.map((name) => findScheduler(name, all))).toEqual(all);
});

it.each([
  ['Euler a', 'euler_ancestral'],
  ['Euler A', 'euler_ancestral'],
  ['euler-a', 'euler_ancestral'],
  ['k_euler_a', 'euler_ancestral'],
  ['K_EULER_ANCESTRAL', 'euler_ancestral'],
  ['EulerAncestralDiscreteScheduler', 'euler_ancestral'],
  ['sample_euler_ancestral', 'euler_ancestral'],
  ['Euler', 'euler'],
  ['K_EULER', 'euler'],
  ['EulerDiscreteScheduler', 'euler'],
  ['DDIM', 'ddim'],
  ['DDIMScheduler', 'ddim'],
  ['PLMS', 'pndm'],
  ['PNDMScheduler', 'pndm'],
  ['DPM++ 2M', 'dpmpp_2m'],
  ['DPMSolverMultistepScheduler', 'dpmpp_2m'],
  ['DPM++ 2M Karras', 'dpmpp_2m_karras'],
  ['KarrasDPM', 'dpmpp_2m_karras'],
  ['dpmpp_2m_sde', 'dpmpp_2m_sde'],
  ['DPM++ 2M SDE Karras', 'dpmpp_2m_sde_karras'],
  ['UniPC', 'unipc'],
  ['uni_pc', 'unipc'],
  ['UniPCMultistepScheduler', 'unipc'],
  ['LCM', 'lcm'],
  ['FlowMatchEulerDiscreteScheduler', 'flow_match_euler'],
])('finds the alias %s as %s', (name, expected) => {
  expect(findScheduler(name, all)).toBe(expected);
});

it.each(['Heun', 'DPM2 a', 'DPM++ SDE', 'DPM++ 3M SDE', 'eule', '', 'k', 'constructor', '__proto__'])(
  'finds no scheduler for %j',
  (name) => {
    expect(findScheduler(name, all)).toBeUndefined();
  },
);

it('finds only schedulers of the model', () => {
  expect(findScheduler('Euler a', ['euler', 'ddim'])).toBeUndefined();
});
