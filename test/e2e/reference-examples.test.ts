/**
 * Examples of the API reference, recorded from a running system, and the commands of its introduction. If an answer has
 * other fields than its example, run `npm run build` and this file with `-u`, which records the example again.
 */
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { beforeAll, beforeEach, expect, it, onTestFinished } from 'vitest';
import { answerExamples } from '../../apps/api/src/openapi/answer-examples.ts';
import { introduction } from '../../apps/api/src/openapi/introduction.ts';
import { useSharedSystem, writer } from './shared-system.ts';

const system = useSharedSystem();
const file = '../../apps/api/src/openapi/answer-examples.ts';
const prompt = 'a fox on a green background';

interface Document {
  paths: Record<string, Record<string, { operationId: string; responses: Record<string, { content?: object }> }>>;
}
let document: Document;
let ajv: Ajv2020;
beforeAll(async () => {
  document = (await (await fetch(`${system.url}/openapi.json`)).json()) as Document;
  ajv = new Ajv2020({ strict: false, validateFormats: false });
  ajv.addSchema(document, 'darkroom');
});

/** Fields of answers that later calls need. */
interface Answer {
  id: string;
  request_id: string;
  status: string;
  data: { b64_json: string }[];
  workers: { id: string; model: string }[];
}

interface Sent {
  params?: Record<string, string>;
  query?: string;
  body?: object;
  form?: FormData;
  headers?: Record<string, string>;
}

const answers: Record<string, Record<string, unknown>> = {};
/** Answers that are errors or do not conform to the document. */
let problems: unknown[] = [];
beforeEach(() => {
  problems = [];
});

/** Sends the request of an operation, checks its answer against the document, and collects it. */
async function call(operationId: string, { params = {}, query = '', body, form, headers = {} }: Sent = {}) {
  const operations = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ path, method, ...operation })),
  );
  const { path, method } = operations.find((operation) => operation.operationId === operationId)!;
  const url = system.url + path.replaceAll(/\{(\w+)\}/g, (_, name: string) => params[name]!) + query;
  const json = body && { 'content-type': 'application/json' };
  const response = await fetch(url, {
    method: method.toUpperCase(),
    headers: { ...json, ...headers },
    body: body === undefined ? (form ?? null) : JSON.stringify(body),
  });
  const answer = (await response.json()) as Answer;
  const differences = response.ok ? differencesOf({ path, method }, String(response.status), answer) : answer;
  if (differences !== null) problems.push({ operationId, differences });
  (answers[operationId] ??= {})[response.status] = answer;
  return answer;
}

/** Returns how an answer differs from its schema in the document. */
function differencesOf({ path, method }: { path: string; method: string }, status: string, answer: unknown) {
  const pointer = ['paths', path, method, 'responses', status, 'content', 'application/json', 'schema']
    .map((part) => encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1')))
    .join('/');
  const validate = ajv.compile({ $ref: `darkroom#/${pointer}` });
  return validate(answer) ? null : validate.errors;
}

/** Fields that only some answers have. */
const varying = ['eta_seconds', 'step_seconds', 'expected_seconds'];

/** Returns true if two answers have the same fields, of the same types. Null fits any type, an empty list any list. */
function isAlike(left: unknown, right: unknown): boolean {
  if (left === null || right === null) return true;
  if (Array.isArray(left) && Array.isArray(right))
    return left.length === 0 || right.length === 0 || isAlike(left[0], right[0]);
  if (typeof left !== 'object' || typeof right !== 'object') return typeof left === typeof right;
  const fields = [left, right].map((each) => Object.keys(each).filter((field) => !varying.includes(field)));
  return (
    fields[0]!.toSorted().join() === fields[1]!.toSorted().join() &&
    fields[0]!.every((field) => isAlike((left as Document)[field as never], (right as Document)[field as never]))
  );
}

/** Shortens an answer, and removes the names of this machine and system. */
function toExample(answer: unknown): unknown {
  const text = JSON.stringify(answer)
    .replaceAll(system.url, 'http://127.0.0.1:8080')
    .replaceAll(hostname(), 'gpu')
    .replaceAll(/([\w+/]{40})[\w+/]{100,}={0,2}/g, '$1…');
  return JSON.parse(text) as unknown;
}

async function endOf(id: string): Promise<void> {
  for (;;) {
    const { status } = await call('getRequest', { params: { id }, query: '?wait=30' });
    if (status === 'succeeded') return;
  }
}

it('the commands of the introduction draw an image', { timeout: 60_000 }, async () => {
  const commands = [...introduction.matchAll(/```sh\n(.*?)```/gs)].map(([, code]) =>
    code!.replaceAll('http://127.0.0.1:8080', system.url),
  );
  expect(commands).toHaveLength(3);
  const directory = await mkdtemp(join(tmpdir(), 'darkroom-introduction-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  const run = async (command: string, id = ''): Promise<string> => {
    const env = { PATH: process.env['PATH'], id };
    return (await promisify(execFile)('sh', ['-c', command], { cwd: directory, env, maxBuffer: 2 ** 24 })).stdout;
  };
  const { request_id: id } = JSON.parse(await run(commands[0]!)) as { request_id: string };
  expect(await run(commands[1]!, id)).toMatch(/event: succeeded\n[^]*data: \[DONE\]\n\n$/);
  await run(commands[2]!, id);
  expect((await readFile(join(directory, 'fox.png'))).subarray(1, 4).toString()).toBe('PNG');
});

it('examples of requests, models and health are answers of a running system', { timeout: 120_000 }, async () => {
  const { request_id: id } = await call('submitRequest', { body: { prompt, seed: 7, num_inference_steps: 4 } });
  await endOf(id);
  await call('submitRequest', { headers: { prefer: 'wait=30' }, body: { prompt, seed: 7, num_inference_steps: 4 } });
  const long = await call('submitRequest', { body: { prompt, num_inference_steps: 200 } });
  await call('cancelRequest', { params: { id: long.request_id } });
  await call('listModels');
  await call('getModel', { params: { id: 'emoji-sd' } });
  await call('getWebhookSecret');
  await call('listFailedWebhooks');
  await call('getHealth');
  await call('getStatus');
  expect(problems).toEqual([]);
});

it('examples of OpenAI routes are answers of a running system', { timeout: 120_000 }, async () => {
  const draw = { model: 'emoji-sd', prompt, num_inference_steps: 4, seed: 7 };
  const { data } = await call('createImages', { body: draw });
  const form = (fields: object): FormData => {
    const made = new FormData();
    made.set('image', new Blob([Buffer.from(data[0]!.b64_json, 'base64')], { type: 'image/png' }), 'fox.png');
    for (const [name, value] of Object.entries(fields)) made.set(name, String(value));
    return made;
  };
  await call('editImage', { form: form(draw) });
  await call('createImageVariations', { form: form({ num_inference_steps: 4 }) });
  await call('generateText', { body: { model: writer, prompt: 'a red apple', max_tokens: 8, temperature: 0 } });
  const messages = [{ role: 'user', content: 'something cold' }];
  await call('createChatCompletion', { body: { model: writer, messages, temperature: 0 } });
  await call('createCompletion', { body: { model: writer, prompt: 'a red apple', max_tokens: 8, temperature: 0 } });
  const input = { model: writer, input: 'something cold', temperature: 0 };
  const { id } = await call('createResponse', { body: input });
  await call('getResponse', { params: { id } });
  await call('listResponseInputItems', { params: { id } });
  await call('countInputTokens', { body: input });
  const background = await call('createResponse', { body: { ...input, background: true } });
  await call('cancelResponse', { params: { id: background.id } });
  await call('deleteResponse', { params: { id } });
  expect(problems).toEqual([]);
});

it('examples of fal and Replicate routes are answers of a running system', { timeout: 120_000 }, async () => {
  const model = { owner: 'darkroom', app: 'emoji-sd', name: 'emoji-sd', version: 'emoji-sd' };
  const input = { prompt, num_inference_steps: 4, seed: 7 };
  const { request_id: id } = await call('submitFalRequest', { params: model, body: input });
  await endOf(id);
  await call('getFalStatus', { params: { ...model, id } });
  await call('getFalResult', { params: { ...model, id } });
  await call('runFalModel', { params: model, body: input });
  const long = await call('submitFalRequest', { params: model, body: { ...input, num_inference_steps: 200 } });
  await call('getFalStatus', { params: { ...model, id: long.request_id } });
  await call('cancelFalRequest', { params: { ...model, id: long.request_id } });
  const prediction = await call('createReplicateModelPrediction', { params: model, body: { input } });
  await endOf(prediction.id);
  await call('getReplicatePrediction', { params: { id: prediction.id } });
  const other = await call('createReplicatePrediction', { body: { version: 'emoji-sd', input } });
  await call('cancelReplicatePrediction', { params: { id: other.id } });
  await call('listReplicateModels');
  await call('getReplicateModel', { params: model });
  await call('listReplicateVersions', { params: model });
  await call('getReplicateVersion', { params: model });
  await call('getReplicateWebhookSecret');
  expect(problems).toEqual([]);
});

it('examples of admin routes are answers of a running system', { timeout: 120_000 }, async () => {
  const params = { model: writer };
  await call('pauseModel', { params });
  await call('resumeModel', { params });
  const { workers } = await call('getStatus');
  const { id: worker } = workers.find(({ model }) => model === writer)!;
  await call('drainWorker', { params: { ...params, worker } });
  await call('resumeWorker', { params: { ...params, worker } });
  await call('checkWorkerHealth', { params: { worker } });
  await call('getWorkerMemory', { params: { worker } });
  await call('sleepWorker', { params: { worker } });
  await call('wakeWorker', { params: { worker } });
  await call('listDeadRequests');
  expect(problems).toEqual([]);
});

it('the API reference shows these answers', async () => {
  const examples = Object.entries(answers).map(([operationId, byStatus]) => {
    // Which of two statuses an operation answers may depend on timing: keep the examples of both.
    const recorded = answerExamples[operationId] ?? {};
    const lines = Object.entries({ ...recorded, ...byStatus }).map(([status, answer]) => {
      const isSame = isAlike(recorded[status], toExample(answer));
      return `    ${status}: ${JSON.stringify(isSame ? recorded[status] : toExample(answer))},\n`;
    });
    return `  ${operationId}: {\n${lines.join('')}  },\n`;
  });
  const text = `// Answers of a running system, recorded by test/e2e/reference-examples.test.ts. Do not edit.
export const answerExamples: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
${examples.join('')}};
`;
  await expect(text).toMatchFileSnapshot(file);
});
