import { describe, expect, it } from 'vitest';
import { startFixture } from './started-process.ts';

function pidOf(match: RegExpExecArray): number {
  return Number(match[1]);
}

describe('the supervisor of npm start', () => {
  it('restarts a killed part', async () => {
    const system = startFixture('system.mjs', ['a', 'b']);
    const first = pidOf(await system.output(/b started as (\d+)/));
    process.kill(first, 'SIGKILL');
    await system.output(/b died \(SIGKILL\)/);
    const second = pidOf(await system.output(/b started as (\d+)/));
    expect(second).not.toBe(first);
    system.child.kill('SIGTERM');
    expect(await system.end).toMatchObject({ code: 0 });
  });

  it('backs off exponentially before restarting a part that keeps dying, up to a limit', async () => {
    const system = startFixture('system.mjs', ['a:dies']);
    for (const pause of ['0.01', '0.02', '0.04', '0.04']) {
      await system.output(/a died \(exit code 7\)/);
      const [, pauseS] = await system.output(/restarting a in ([\d.]+) s/);
      expect(pauseS).toBe(pause);
    }
    system.child.kill('SIGTERM');
    expect(await system.end).toMatchObject({ code: 0 });
  });

  it.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)('stops the parts one after the other on %s', async (signal) => {
    const names = ['a', 'b', 'c', 'd'];
    const system = startFixture('system.mjs', names);
    await untilStarted(system, names);
    system.child.kill(signal);
    const { code, output } = await system.end;
    expect(code).toBe(0);
    expect(output.match(/\w got SIGTERM|all stopped/g)).toEqual([
      ...names.map((name) => `${name} got SIGTERM`),
      'all stopped',
    ]);
  });

  it('kills parts that do not stop on the second Ctrl-C', async () => {
    const system = startFixture('system.mjs', ['a:stubborn', 'b']);
    await untilStarted(system, ['a', 'b']);
    system.child.kill('SIGINT');
    await system.output(/a got SIGTERM/);
    system.child.kill('SIGINT');
    expect(await system.end).toMatchObject({ code: 130 });
  });

  it('leaves no process behind when it is killed itself', async () => {
    const system = startFixture('system.mjs', ['a', 'b']);
    await untilStarted(system, ['a', 'b']);
    system.child.kill('SIGKILL');
    await expect(system.end).resolves.toMatchObject({ code: null });
  });

  it('kills the children of a part that was killed', async () => {
    const system = startFixture('system.mjs', ['a:has-children']);
    process.kill(pidOf(await system.output(/a started as (\d+)/)), 'SIGKILL');
    await system.output(/a died[^]*a started as/);
    system.child.kill('SIGTERM');
    await expect(system.end).resolves.toMatchObject({ code: 0 });
  });
});

async function untilStarted(system: ReturnType<typeof startFixture>, names: readonly string[]): Promise<void> {
  // Parts start concurrently: accept their lines in any order.
  await system.output(new RegExp(names.map((name) => `(?=[^]*${name} started as)`).join('')));
}
