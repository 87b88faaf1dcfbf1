/** Memory of a group of processes, independent of other processes on the machine. */
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';

/**
 * Returns the anonymous memory of each process in MB, and as one more entry their mapped files, each page once. Not
 * PSS: that would attribute part of shared pages, such as Node's program, to other processes on the machine.
 */
export function memoryBeside(pids: readonly number[]): Record<string, number> {
  const own: Record<string, number> = {};
  const shared = new Map<string, number>();
  for (const pid of pids) {
    const maps = readMaps(pid);
    let name = nameOf(pid);
    for (let count = 2; name in own; count++) name = name.replace(/(?: \d+)?$/, ` ${count}`);
    own[name] = maps.reduce((sum, { anonymous }) => sum + anonymous, 0) / 1000;
    for (const { place: location, resident, anonymous } of maps)
      shared.set(location, Math.max(shared.get(location) ?? 0, resident - anonymous));
  }
  return { ...own, 'files that are mapped': [...shared.values()].reduce((sum, part) => sum + part, 0) / 1000 };
}

/** A memory mapping; sizes in KB of 1000 bytes. */
interface Mapping {
  /** File and offset. */
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

/** Returns the name of the app, the script, or the program of a process. */
function nameOf(pid: number): string {
  const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split(/[\0 ]/);
  const script = words.find((word) => /\.(?:[cm]?js|sh)$/.test(word)) ?? words[0]!;
  return /apps\/(?<app>[^/]+)\//.exec(script)?.groups?.['app'] ?? basename(script);
}
