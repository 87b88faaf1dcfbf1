import { describe, expect, it } from 'vitest';
import { BaseService } from './service.ts';
import { ServiceGroup } from './service-group.ts';

class Recorder extends BaseService {
  readonly #name: string;
  readonly #calls: string[];
  readonly #failing: 'start' | 'stop' | undefined;

  constructor(name: string, calls: string[], failing?: 'start' | 'stop') {
    super();
    this.#name = name;
    this.#calls = calls;
    this.#failing = failing;
  }

  protected override async onStart(): Promise<void> {
    this.#calls.push(`start ${this.#name}`);
    if (this.#failing === 'start') throw new Error(`${this.#name} cannot start`);
  }

  protected override async onStop(): Promise<void> {
    this.#calls.push(`stop ${this.#name}`);
    if (this.#failing === 'stop') throw new Error(`${this.#name} cannot stop`);
  }
}

describe('a service', () => {
  it('stops without having started', async () => {
    const calls: string[] = [];
    await new Recorder('a', calls).stop();
    expect(calls).toEqual([]);
  });

  it('starts and stops once, even if called repeatedly and concurrently', async () => {
    const calls: string[] = [];
    const service = new Recorder('a', calls);
    await Promise.all([service.start(), service.start(), service.stop(), service.stop()]);
    await service.stop();
    expect(calls).toEqual(['start a', 'stop a']);
  });

  it('can be started again', async () => {
    const calls: string[] = [];
    const service = new Recorder('a', calls);
    for (const step of ['start', 'stop', 'start', 'stop'] as const) await service[step]();
    expect(calls).toEqual(['start a', 'stop a', 'start a', 'stop a']);
  });

  it('calls onStop once after a failed start', async () => {
    const calls: string[] = [];
    const service = new Recorder('a', calls, 'start');
    await expect(service.start()).rejects.toThrow('a cannot start');
    await service.stop();
    expect(calls).toEqual(['start a', 'stop a']);
  });

  it('stops when it is disposed of', async () => {
    const calls: string[] = [];
    {
      await using service = new Recorder('a', calls);
      await service.start();
    }
    expect(calls).toEqual(['start a', 'stop a']);
  });
});

describe('a group of services', () => {
  it('starts in order and stops in the opposite order', async () => {
    const calls: string[] = [];
    const group = new ServiceGroup([new Recorder('a', calls), new Recorder('b', calls)]);
    await group.start();
    await group.stop();
    expect(calls).toEqual(['start a', 'start b', 'stop b', 'stop a']);
  });

  it('stops the started services when one fails to start', async () => {
    const calls: string[] = [];
    const group = new ServiceGroup([
      new Recorder('a', calls),
      new Recorder('b', calls, 'start'),
      new Recorder('c', calls),
    ]);
    await expect(group.start()).rejects.toThrow('b cannot start');
    expect(calls).toEqual(['start a', 'start b', 'stop b', 'stop a']);
  });

  it('stops the others when one fails to stop, and then rejects', async () => {
    const calls: string[] = [];
    const group = new ServiceGroup([new Recorder('a', calls), new Recorder('b', calls, 'stop')]);
    await group.start();
    await expect(group.stop()).rejects.toThrow('1 of 2 services did not stop cleanly');
    expect(calls.at(-1)).toBe('stop a');
  });
});
