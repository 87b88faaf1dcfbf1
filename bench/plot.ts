/**
 * SVG plots of benches for light and dark pages: panels of grouped bars or lines with axes, a shared legend, and a
 * footer with the source of the figures.
 */

/** A panel. Its title has the quantity, the unit, and which direction is better. */
export type Panel = BarPanel | LinePanel;

export interface BarPanel {
  kind: 'bars';
  title: string;
  /** Labels below the axis, from left to right. */
  groups: readonly string[];
  series: readonly {
    name: string;
    /** One bar per group; undefined if not measured. */
    bars: readonly (Bar | undefined)[];
  }[];
}

export interface Bar {
  value: number;
  /** Minimum and maximum of the rounds. */
  spread?: readonly [low: number, high: number];
}

export interface LinePanel {
  kind: 'lines';
  title: string;
  /** Quantity and unit of the horizontal axis. */
  xTitle: string;
  /** Labels of the x values 0, 1 and so on, for a categorical axis. */
  xNames?: readonly string[];
  series: readonly { name: string; points: readonly (readonly [x: number, y: number])[] }[];
}

export interface Plot {
  title: string;
  panels: readonly Panel[];
  /** Lines with command, machine, date, versions. */
  footer: readonly string[];
}

/** Maps values to positions; `ticks` are the labeled values. */
interface Scale {
  ticks: readonly number[];
  at: (value: number) => number;
}

interface Box {
  left: number;
  top: number;
  width: number;
  height: number;
}

/** Sizes in pixels. */
const size = { width: 960, header: 46, legendLine: 18, panel: 284, footerLine: 16, letter: 6.4, widestBar: 80 };
const margin = { left: 58, right: 26, top: 34, bottom: 58 };
const maxColumns = 2;
/** Maximum ratio of two values on a linear axis; above it the axis is logarithmic. */
const maxLinearRatio = 30;

/** Colors distinguishable with color blindness (Okabe and Ito 2008); the first is for the subject of the bench. */
const colors = [
  '#d55e00',
  '#0072b2',
  '#009e73',
  '#cc79a7',
  '#e69f00',
  '#56b4e9',
  '#a6761d',
  '#7f3fbf',
  '#c2c200',
  '#b30000',
  '#00a6a6',
  '#ff7f9e',
  '#6f7fdf',
  '#9fbf3f',
  '#bf9f7f',
];

const gray = '#8a8a8a';

const style = `
  svg { --paper: #ffffff; --ink: #1f2328; --faint: #59636e; --grid: #d1d9e0; font: 12px system-ui, sans-serif; }
  @media (prefers-color-scheme: dark) { svg { --paper: #0d1117; --ink: #f0f6fc; --faint: #9198a1; --grid: #3d444d; } }
  .paper { fill: var(--paper); } text { fill: var(--ink); } .faint { fill: var(--faint); font-size: 11px; }
  .title { font-size: 16px; font-weight: 600; } .panel { font-weight: 600; } .value { font-size: 10px; }
  .grid { stroke: var(--grid); } .axis, .spread { stroke: var(--ink); } .line { fill: none; stroke-width: 2; }`;

/** Returns the text of an SVG file. */
export function drawPlot({ title, panels, footer }: Plot): string {
  const columns = Math.min(maxColumns, panels.length);
  const rows = Math.ceil(panels.length / columns);
  // A panel with one series needs no legend: its title names it.
  const many = panels.filter(({ series }) => series.length > 1);
  const names = [...new Set(many.flatMap(({ series }) => series.map(({ name }) => name)))];
  const colorOfOne = names.length === 0 ? colors[0]! : gray;
  const colorOf = (name: string): string => colors[names.indexOf(name) % colors.length] ?? colorOfOne;
  const legend = drawLegend(names, colorOf);
  const width = size.width / columns;
  const header = size.header + legend.lines * size.legendLine;
  const bottom = header + rows * size.panel;
  const height = bottom + 14 + footer.length * size.footerLine;
  const drawn = panels.map((panel, at) => {
    const top = header + Math.floor(at / columns) * size.panel;
    const box = {
      left: (at % columns) * width + margin.left,
      top: top + margin.top,
      width: width - margin.left - margin.right,
      height: size.panel - margin.top - margin.bottom,
    };
    return panel.kind === 'bars' ? drawBars(panel, box, colorOf) : drawLines(panel, box, colorOf);
  });
  const below = footer.map((line, at) => text(line, 14, bottom + (at + 1) * size.footerLine, 'class="faint"'));
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${size.width} ${height}" role="img">`,
    `<title>${escaped(title)}</title><style>${style}\n</style>`,
    `<rect class="paper" width="${size.width}" height="${height}"/>`,
    text(title, 14, 26, 'class="title"'),
    ...legend.drawn,
    ...drawn,
    ...below,
    '</svg>\n',
  ].join('\n');
}

/** Draws the legend from left to right, with line breaks. */
function drawLegend(names: readonly string[], colorOf: (name: string) => string): { drawn: string[]; lines: number } {
  if (names.length === 0) return { drawn: [], lines: 0 };
  let [left, line] = [14, 0];
  const drawn = names.map((name) => {
    const width = 34 + name.length * size.letter;
    if (left + width > size.width) [left, line] = [14, line + 1];
    const top = 41 + line * size.legendLine;
    const entry = `<rect x="${px(left)}" y="${top}" width="11" height="11" fill="${colorOf(name)}"/>`;
    const named = entry + text(name, left + 16, top + 10);
    left += width;
    return named;
  });
  return { drawn, lines: line + 1 };
}

function drawBars({ title, groups, series }: BarPanel, box: Box, colorOf: (name: string) => string): string {
  const ends = series.flatMap(({ bars }) => bars.flatMap((bar) => bar?.spread ?? bar?.value ?? 0));
  const y = flipped(linearScale(Math.min(0, ...ends), Math.max(0, ...ends), box.height), box);
  const groupWidth = box.width / groups.length;
  const barWidth = Math.min(size.widestBar, (groupWidth * 0.84) / series.length);
  const base = box.top + box.height;
  const longest = Math.max(...series.flatMap(({ bars }) => bars.map((bar) => figure(bar?.value ?? 0).length)));
  const isWritten = longest * size.letter * 0.85 <= barWidth;
  const parts = groups.map((group, at) => {
    const left = box.left + (at + 0.5) * groupWidth - (series.length * barWidth) / 2;
    const bars = series.map(({ name, bars: own }, index) =>
      drawBar(own[at], { left: left + index * barWidth, width: barWidth, base, y, isWritten, color: colorOf(name) }),
    );
    const names = inLines(group, groupWidth / size.letter - 2).map((line, index) =>
      text(line, box.left + (at + 0.5) * groupWidth, base + 18 + 13 * index, 'text-anchor="middle"'),
    );
    return [...bars, ...names].join('\n');
  });
  return [...drawFrame(title, box, y), ...parts].join('\n');
}

interface BarPosition {
  left: number;
  width: number;
  base: number;
  y: Scale;
  /** True if the value is written above the bar; equal for all bars of a panel. */
  isWritten: boolean;
  color: string;
}

function drawBar(bar: Bar | undefined, { left, width, base, y, isWritten, color }: BarPosition): string {
  const middle = left + width / 2;
  if (bar === undefined) return text('–', middle, base - 4, 'class="faint" text-anchor="middle"');
  const top = y.at(bar.value);
  const drawn = [
    `<rect x="${px(left + 0.5)}" y="${px(Math.min(top, y.at(0)))}" width="${px(width - 1)}" height="${px(Math.abs(y.at(0) - top))}" fill="${color}"/>`,
  ];
  if (bar.spread !== undefined) {
    const [low, high] = bar.spread.map(y.at);
    drawn.push(`<path class="spread" d="M${px(middle)} ${px(low!)}V${px(high!)}"/>`);
  }
  const above = Math.min(top, y.at(bar.spread?.[1] ?? bar.value)) - 4;
  if (isWritten) drawn.push(text(figure(bar.value), middle, above, 'class="value" text-anchor="middle"'));
  return drawn.join('');
}

function drawLines(panel: LinePanel, box: Box, colorOf: (name: string) => string): string {
  const { title, xTitle, xNames, series } = panel;
  const points = series.flatMap((each) => each.points);
  const xs = points.map(([x]) => x);
  const ys = points.map(([, y]) => y);
  const x = shifted(
    xNames === undefined ? scaleOf(xs, Math.min(...xs), box.width) : ordinal(xNames, box.width),
    box.left,
  );
  const y = flipped(scaleOf(ys, 0, box.height), box);
  const base = box.top + box.height;
  const lines = series.map(({ name, points: own }) => {
    const places = own.map(([px_, py]) => [px(x.at(px_)), px(y.at(py))] as const);
    const path = `<path class="line" stroke="${colorOf(name)}" d="M${places.map((place) => place.join(' ')).join('L')}"/>`;
    const dots = places.map(([cx, cy]) => `<circle cx="${cx}" cy="${cy}" r="3" fill="${colorOf(name)}"/>`);
    return [path, ...dots].join('');
  });
  const ticks = x.ticks.map((tick) => {
    const name = xNames === undefined ? figure(tick) : xNames[tick];
    return name === undefined ? '' : text(name, x.at(tick), base + 16, 'class="faint" text-anchor="middle"');
  });
  const below = text(xTitle, box.left + box.width / 2, base + 34, 'class="faint" text-anchor="middle"');
  return [...drawFrame(title, box, y), ...ticks, below, ...lines].join('\n');
}

/** Draws the title, horizontal grid lines with their values, and the axis. */
function drawFrame(title: string, box: Box, y: Scale): string[] {
  const right = box.left + box.width;
  const ticks = y.ticks.map((tick) => {
    const at = px(y.at(tick));
    const name = text(figure(tick), box.left - 6, y.at(tick) + 4, 'class="faint" text-anchor="end"');
    return `<path class="grid" d="M${box.left} ${at}H${right}"/>${name}`;
  });
  const base = box.top + box.height;
  return [
    text(title, box.left - margin.left + 14, box.top - 14, 'class="panel"'),
    ...ticks,
    `<path class="axis" d="M${box.left} ${base}H${right}"/>`,
  ];
}

/** Returns a linear or logarithmic scale. @param from start of a linear scale. */
function scaleOf(values: readonly number[], from: number, length: number): Scale {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  return low > 0 && high / low > maxLinearRatio ? logScale(low, high, length) : linearScale(from, high, length);
}

/** Returns a categorical scale with equal distances and half a distance at both ends. */
function ordinal(names: readonly string[], length: number): Scale {
  return { ticks: [...names.keys()], at: (value) => ((value + 0.5) / names.length) * length };
}

/** Returns a linear scale with up to six ticks, 1, 2 or 5 times a power of ten apart. */
function linearScale(low: number, high: number, length: number): Scale {
  const span = high > low ? high - low : 1;
  const power = 10 ** Math.floor(Math.log10(span / 5));
  const distance = [1, 2, 5, 10].map((factor) => factor * power).find((each) => span / each <= 5)!;
  const first = Math.floor(low / distance);
  const last = Math.ceil((low + span) / distance);
  const ticks = Array.from({ length: last - first + 1 }, (_, at) => (first + at) * distance);
  return { ticks, at: (value) => ((value - ticks[0]!) / (ticks.at(-1)! - ticks[0]!)) * length };
}

/** Returns a logarithmic scale with ticks at powers of ten. */
function logScale(low: number, high: number, length: number): Scale {
  const first = Math.floor(Math.log10(low));
  const last = Math.max(first + 1, Math.ceil(Math.log10(high)));
  const ticks = Array.from({ length: last - first + 1 }, (_, at) => 10 ** (first + at));
  return { ticks, at: (value) => ((Math.log10(value) - first) / (last - first)) * length };
}

/** Flips a scale vertically, because pixels count from the top. */
function flipped({ ticks, at }: Scale, { top, height }: Box): Scale {
  return { ticks, at: (value) => top + height - at(value) };
}

function shifted({ ticks, at }: Scale, left: number): Scale {
  return { ticks, at: (value) => left + at(value) };
}

/** Wraps a label at spaces into at most three lines of about this many letters. */
function inLines(content: string, letters: number): string[] {
  const lines = [''];
  for (const word of content.split(' '))
    if (lines.length < 3 && lines.at(-1)!.length + word.length >= letters && lines.at(-1) !== '') lines.push(word);
    else lines.push(`${lines.pop()!} ${word}`.trim());
  return lines;
}

/** Formats a value with three digits: 0.123, 12.3, 1.23M. */
function figure(value: number): string {
  return value.toLocaleString('en', { maximumSignificantDigits: 3, notation: 'compact' });
}

function text(content: string, x: number, y: number, attributes = ''): string {
  return `<text x="${px(x)}" y="${px(y)}" ${attributes}>${escaped(content)}</text>`;
}

function px(value: number): string {
  return value.toFixed(1);
}

function escaped(content: string): string {
  return content.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
