/** What processes take of the memory together, whatever else runs on the machine. */
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';

/**
 * What each has alone, MB, and as one more entry the files that they have mapped, each page once. PSS would say the same if
 * nobody else on the machine ran Node: it gives the others their part of its program.
 */
export function memoryBeside(pids: readonly number[]): Record<string, number> {
  const own: Record<string, number> = {};
  const shared = new Map<string, number>();
  for (const pid of pids) {
    const maps = readMaps(pid);
    let name = nameOf(pid);
    for (let count = 2; name in own; count++) name = name.replace(/(?: \d+)?$/, ` ${count}`);
    own[name] = maps.reduce((sum, { anonymous }) => sum + anonymous, 0) / 1000;
    for (const { place, resident, anonymous } of maps)
      shared.set(place, Math.max(shared.get(place) ?? 0, resident - anonymous));
  }
  return { ...own, 'files that are mapped': [...shared.values()].reduce((sum, part) => sum + part, 0) / 1000 };
}

/** KB of 1000 bytes. */
interface Mapping {
  /** The file, and where in it. */
  place: string;
  resident: number;
  anonymous: number;
}

function readMaps(pid: number): Mapping[] {
  const mappings: Mapping[] = [];
  for (const line of readFileSync(`/proc/${pid}/smaps`, 'utf8').split('\n')) {
    const head = /^[\da-f]+-[\da-f]+ \S+ (?<offset>\S+) \S+ \d+ *(?<file>.*)$/.exec(line)?.groups;
    if (head) mappings.push({ place: `${head['file']} ${head['offset']}`, resident: 0, anonymous: 0 });
    const count = /^(?<field>Rss|Anonymous): +(?<kib>\d+) kB$/.exec(line)?.groups;
    const last = mappings.at(-1);
    if (!count || !last) continue;
    last[count['field'] === 'Rss' ? 'resident' : 'anonymous'] = Number(count['kib']) * 1.024;
  }
  return mappings;
}

/** The app, the script, or the program. */
function nameOf(pid: number): string {
  const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split(/[\0 ]/);
  const script = words.find((word) => /\.(?:[cm]?js|sh)$/.test(word)) ?? words[0]!;
  return /apps\/(?<app>[^/]+)\//.exec(script)?.groups?.['app'] ?? basename(script);
}
