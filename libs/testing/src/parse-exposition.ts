/** A strict parser of Prometheus' text format: https://prometheus.io/docs/instrumenting/exposition_formats/ */

/** Parsed metrics. */
export interface Exposition {
  /** Type by family. */
  types: ReadonlyMap<string, string>;
  /** Returns the value of the series with exactly these labels; undefined if there is none. */
  value(name: string, labels?: Readonly<Record<string, string>>): number | undefined;
  /** Returns all series with a name. */
  series(name: string): readonly Sample[];
}

export interface Sample {
  name: string;
  labels: Readonly<Record<string, string>>;
  value: number;
}

const samplePattern =
  /^(?<name>[a-zA-Z_:][\w:]*)(?:\{(?<labels>(?:[^"}]|"(?:[^"\\]|\\.)*")*)\})? (?<value>[Nn]a[Nn]|[+-]Inf|[-+]?[\d.]+(?:e[-+]?\d+)?)$/;
const labelPattern = /^\s*(?<name>[a-zA-Z_]\w*)="(?<value>(?:[^"\\\n]|\\["\\n])*)"\s*(?:,|$)/;

/** Parses a page. @throws Error at the first part that Prometheus would refuse or that is ambiguous. */
export function parseExposition(page: string): Exposition {
  if (!page.endsWith('\n')) throw new Error('the page does not end with a line break');
  const types = new Map<string, string>();
  const samples = new Map<string, Sample>();
  let last = '';
  for (const line of page.split('\n')) {
    if (line === '' || line.startsWith('# HELP ')) continue;
    const declared = /^# TYPE (?<name>\S+) (?<type>counter|gauge|histogram|summary|untyped)$/.exec(line)?.groups;
    if (declared !== undefined) {
      const { name = '', type = '' } = declared;
      if (types.has(name)) throw new Error(`${name} is declared twice`);
      types.set(name, type);
      last = name;
      continue;
    }
    const sample = parseSample(line);
    const family = familyOf(sample.name, types);
    if (family === undefined) throw new Error(`no family for: ${line}`);
    if (family !== last) throw new Error(`among the series of ${last}: ${line}`);
    const key = keyOf(sample.name, sample.labels);
    if (samples.has(key)) throw new Error(`twice: ${line}`);
    samples.set(key, sample);
  }
  checkHistograms(types, [...samples.values()]);
  return {
    types,
    value: (name, labels = {}) => samples.get(keyOf(name, labels))?.value,
    series: (name) => [...samples.values()].filter((sample) => sample.name === name),
  };
}

function parseSample(line: string): Sample {
  const { name = '', labels: text = '', value = '' } = samplePattern.exec(line)?.groups ?? {};
  if (name === '') throw new Error(`not a sample: ${line}`);
  const labels: Record<string, string> = {};
  for (let rest = text; rest !== '';) {
    const found = labelPattern.exec(rest);
    if (found?.groups === undefined) throw new Error(`not labels: ${line}`);
    const { name: label = '', value: labelValue = '' } = found.groups;
    if (label in labels) throw new Error(`label ${label} twice: ${line}`);
    labels[label] = labelValue;
    rest = rest.slice(found[0].length);
  }
  return { name, labels, value: Number(value.replace('Inf', 'Infinity')) };
}

function familyOf(name: string, types: ReadonlyMap<string, string>): string | undefined {
  if (types.has(name)) return types.get(name) === 'histogram' ? undefined : name;
  const base = name.replace(/_(?:bucket|sum|count)$/, '');
  const type = types.get(base);
  return type === 'histogram' || type === 'summary' ? base : undefined;
}

/** Checks that bucket counts are cumulative and that the infinite bucket equals the count. */
function checkHistograms(types: ReadonlyMap<string, string>, samples: readonly Sample[]): void {
  for (const [family] of [...types].filter(([, type]) => type === 'histogram')) {
    const counts = new Map<string, number>();
    const highest = new Map<string, number>();
    for (const { name, labels, value } of samples) {
      const { le, ...rest } = labels;
      const key = keyOf(family, rest);
      if (name === `${family}_count`) counts.set(key, value);
      if (name !== `${family}_bucket` || le === undefined) continue;
      if (value < (highest.get(key) ?? 0)) throw new Error(`${key} falls at le=${le}`);
      highest.set(key, value);
    }
    for (const [key, count] of counts)
      if (highest.get(key) !== count) throw new Error(`the buckets of ${key} do not end in its count`);
  }
}

function keyOf(name: string, labels: Readonly<Record<string, string>>): string {
  const sorted = Object.entries(labels).toSorted(([left], [right]) => (left < right ? -1 : 1));
  return `${name}${JSON.stringify(sorted)}`;
}
