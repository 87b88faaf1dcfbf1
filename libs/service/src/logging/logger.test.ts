import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DarkroomError } from '@darkroom/core';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createLogger } from './logger.ts';

function createRecordingLogger(options: { level?: string; file?: string } = {}) {
  const lines: Record<string, unknown>[] = [];
  const stream = { write: (line: string) => void lines.push(JSON.parse(line)) };
  return { log: createLogger({ app: 'api', ...options, stream }), lines };
}

describe('createLogger', () => {
  it('writes one JSON object per line, with the app and the fields', () => {
    const { log, lines } = createRecordingLogger();
    log.warn({ request_id: 'emoji-sd-01', step: 3 }, 'slow');
    expect(lines).toEqual([
      {
        level: 'warn',
        time: expect.any(String),
        app: 'api',
        pid: process.pid,
        request_id: 'emoji-sd-01',
        step: 3,
        msg: 'slow',
      },
    ]);
  });

  it('omits lines below its level', () => {
    const { log, lines } = createRecordingLogger({ level: 'error' });
    log.info('not written');
    log.error('written');
    expect(lines.map((line) => line['msg'])).toEqual(['written']);
  });

  it.each([
    { prompt: 'SECRET' },
    { negative_prompt: 'SECRET', step: 1 },
    { negativePrompt: 'SECRET' },
    { input: { prompt: 'SECRET', negativePrompt: 'SECRET' } },
    { envelope: { input: { prompt: 'SECRET' } } },
    { job: { data: { input: { negative_prompt: 'SECRET' } } } },
    { requests: [{ prompt: 'SECRET' }, { prompt: 'SECRET' }] },
  ])('never writes a prompt: %j', (fields) => {
    const { log, lines } = createRecordingLogger();
    log.info(fields, 'a line');
    log.child(fields).info('from a child');
    expect(lines).toHaveLength(2);
    expect(JSON.stringify(lines)).not.toContain('SECRET');
    expect(fields).toEqual(JSON.parse(JSON.stringify(fields)));
    expect(JSON.stringify(fields)).toContain('SECRET');
  });

  it('writes the code and the operation of a DarkroomError', () => {
    const { log, lines } = createRecordingLogger();
    log.error({ err: new DarkroomError('worker_lost', 'store.lease', 'gone') });
    expect(lines[0]).toMatchObject({ err: { code: 'worker_lost', op: 'store.lease', message: 'gone' } });
  });

  it("writes an error's searchable fields, and none that may contain a prompt", () => {
    const { log, lines } = createRecordingLogger();
    const refused = Object.assign(new Error('OOM command not allowed'), {
      command: { name: 'evalsha', args: ['hash', '1', '{"input":{"prompt":"SECRET"}}'] },
      code: 'OOM',
    });
    log.error({ err: refused }, 'as a field');
    log.error(refused);
    log.child({ request_id: 'emoji-sd-01' }).error({ err: new Error('outer', { cause: refused }) });
    log.error({ err: new AggregateError([refused], 'several') });
    expect(JSON.stringify(lines)).not.toContain('SECRET');
    expect(lines[0]).toMatchObject({
      err: { type: 'Error', message: refused.message, code: 'OOM', command: 'evalsha' },
    });
    expect(lines[1]).toMatchObject({ err: { message: refused.message }, msg: refused.message });
    expect(lines[2]).toMatchObject({ err: { message: 'outer: OOM command not allowed' } });
    expect(lines[3]).toMatchObject({ err: { aggregateErrors: [{ command: 'evalsha' }] } });
  });

  it('appends every line to a file too, and creates its directory', () => {
    const directory = mkdtempSync(join(tmpdir(), 'darkroom-log-'));
    onTestFinished(() => rmSync(directory, { recursive: true }));
    const file = join(directory, 'logs/darkroom.jsonl');
    const first = createRecordingLogger({ file, level: 'debug' });
    first.log.debug('one');
    createRecordingLogger({ file }).log.info('two');
    const written = readFileSync(file, 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).msg);
    expect(written).toEqual(['one', 'two']);
    expect(first.lines).toHaveLength(1);
  });
});
