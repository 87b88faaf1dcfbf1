/** Runs the conformance suite on modules in their own processes. They run built code: `npm run build` first. */
import { describeModule } from '../conformance/describe-module.ts';

const fixture = (name: string): URL => new URL(`./__fixtures__/${name}.mjs`, import.meta.url);

describeModule(fixture('writer'), {
  short: (number) => ({ prompt: `${number} wishes`, max_tokens: 5, seed: number }),
  long: { prompt: 'wish', max_tokens: 4096 },
  bad: { body: { prompt: 'nonsense' }, message: 'prompt: makes no sense' },
});
describeModule(fixture('painter'), {
  short: (number) => ({ prompt: `${number} apples`, seed: number }),
  long: { prompt: 'apples', size: '1024x1024' },
  bad: { body: { prompt: 'nonsense' }, message: 'prompt: makes no sense' },
});
