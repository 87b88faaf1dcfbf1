/** The entry of a judge's process: loads the module, hands on what it is asked, and says what it finds. */
import { messageOf } from '../module/module-calls.ts';
import { isObject, shown } from '../module/wrong-said.ts';
import { obeyParent } from '../process/parent-channel.ts';
import type { JudgedSubject, MessageFromJudge, MessageToJudge } from './judge-message.ts';
import type { CreateJudge, OwnJudge, OwnVerdict } from './own-judge.ts';

const sendToParent = process.send!.bind(process);
// The channel is not the module's.
delete process.send;

let judge: OwnJudge = {};
const calls = new Map<number, AbortController>();

/** Resolves when the kernel has it. */
function send(message: MessageFromJudge): Promise<void> {
  return new Promise((resolve) => void sendToParent(message, undefined, undefined, () => resolve()));
}

async function start({ specifier, model }: Extract<MessageToJudge, { type: 'start' }>): Promise<void> {
  try {
    judge = await create(specifier, model);
    const judges: JudgedSubject['type'][] = [];
    if (judge.judgePrompt !== undefined) judges.push('prompt');
    if (judge.judgePicture !== undefined) judges.push('picture');
    await send({ type: 'ready', judges });
  } catch (error) {
    await send({ type: 'unfit', message: messageOf(error) });
    process.exit(1);
  }
}

async function create(specifier: string, model: string): Promise<OwnJudge> {
  const { createJudge } = (await import(specifier)) as { createJudge?: CreateJudge };
  if (typeof createJudge !== 'function') throw new Error('expected a module that exports a function createJudge');
  const made: unknown = await createJudge({ model });
  const given = isObject(made) ? [made['judgePrompt'], made['judgePicture']].filter((each) => each !== undefined) : [];
  if (given.length === 0 || given.some((each) => typeof each !== 'function'))
    throw new Error('createJudge gave no functions judgePrompt or judgePicture, of which it has to give one');
  return made as OwnJudge;
}

async function answer(message: Extract<MessageToJudge, JudgedSubject>): Promise<void> {
  const { call } = message;
  const controller = new AbortController();
  calls.set(call, controller);
  try {
    const verdict = await ask(message, controller.signal);
    await send({ type: 'verdict', call, ...read(verdict) });
  } catch (error) {
    await send({ type: 'threw', call, message: messageOf(error) });
  } finally {
    calls.delete(call);
  }
}

function ask(message: JudgedSubject, signal: AbortSignal): Promise<OwnVerdict> | OwnVerdict | undefined {
  return message.type === 'prompt'
    ? judge.judgePrompt?.(message.subject, signal)
    : judge.judgePicture?.(message.subject, signal);
}

/** A verdict that somebody forgot to give is none. */
function read(verdict: unknown): { allowed: boolean; reason: string } {
  const { allowed, reason = '' } = isObject(verdict) ? verdict : {};
  if (allowed === true) return { allowed, reason: '' };
  if (allowed === false && typeof reason === 'string' && reason !== '') return { allowed, reason };
  throw new Error(`it gave ${shown(verdict)}, expected { allowed: true } or { allowed: false, reason: "…" }`);
}

obeyParent();
// A rejection that nobody caught comes here too. The module may be in any state, so it ends.
process.on('uncaughtException', (error: unknown) => {
  sendToParent({ type: 'dying', message: messageOf(error) }, undefined, undefined, () => process.exit(1));
});
process.on('message', (message: MessageToJudge) => {
  if (message.type === 'start') void start(message);
  else if (message.type === 'abort') calls.get(message.call)?.abort();
  else void answer(message);
});
