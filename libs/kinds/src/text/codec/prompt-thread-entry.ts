/** Entry of the thread that `prompt-thread.ts` starts: reads prompts one after the other with one codec. */
import { parentPort, workerData } from 'node:worker_threads';
import { type PromptJob, readPrompt } from './read-prompt.ts';
import { createTextCodec } from './text-codec.ts';

const port = parentPort!;
const codec = createTextCodec(workerData as Uint8Array);
// The time limit of a job does not include the start of its thread.
port.postMessage('ready', []);
port.on('message', (job: PromptJob) => port.postMessage(readPrompt(codec, job), []));
