import { expect, it } from 'vitest';
import { parseExposition } from './parse-exposition.ts';

const head = '# HELP a A.\n# TYPE a gauge\n';
const histogram = '# TYPE h histogram\n';

it('parses values and labels', () => {
  const page = parseExposition(`${head}a{x="1",y="a,b}"} 2.5e-3\na +Inf\n`);
  expect(page.value('a', { y: 'a,b}', x: '1' })).toBe(0.0025);
  expect(page.value('a')).toBe(Infinity);
});

it.each([
  ['a page without an end', `${head}a 1`, 'does not end'],
  ['a family twice', `${head}a 1\n${head}`, 'declared twice'],
  ['a series twice', `${head}a{x="1",y="2"} 1\na{y="2",x="1"} 2\n`, 'twice'],
  ['a series without a family', `${head}b 1\n`, 'no family'],
  ['a series away from its family', `${head}# TYPE b gauge\nb 1\na 1\n`, 'among the series'],
  ['a label twice', `${head}a{x="1",x="2"} 1\n`, 'label x twice'],
  ['a value that is none', `${head}a one\n`, 'not a sample'],
  ['a quote that is not escaped', `${head}a{x="""} 1\n`, 'not a'],
  ['buckets that fall', `${histogram}h_bucket{le="1"} 2\nh_bucket{le="+Inf"} 1\nh_sum 1\nh_count 1\n`, 'falls at'],
  ['buckets that do not end in the count', `${histogram}h_bucket{le="+Inf"} 1\nh_sum 1\nh_count 2\n`, 'do not end in'],
])('refuses %s', (_what, page, message) => {
  expect(() => parseExposition(page)).toThrow(message);
});
