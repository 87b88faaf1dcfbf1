// Loads a model's directory as a worker does and answers chats, each alone: node write-text.mjs DIRECTORY DTYPE CHATS
// CHATS: JSON, a list of lists of messages. Says for each the tokens of the prompt and the text.
import { loadTextPipeline, readTextModelDirectory } from '../../../libs/language/dist/index.js';

const [directory, dtype, chats] = process.argv.slice(2);
const { codec, card } = await readTextModelDirectory(directory, { dtypes: { all: dtype, parts: {} } });
const pipeline = await loadTextPipeline({ directory, dtypes: { all: dtype, parts: {} }, threads: 1 });
const sampling = { temperature: 0, topP: 1, topK: 0, minP: 0, presencePenalty: 0, frequencyPenalty: 0 };
const answers = [];
for (const messages of JSON.parse(chats)) {
  const prompt = codec.encode(codec.renderChat(messages), { addSpecialTokens: false });
  const input = { prompt, n: 1, maxTokens: 24, ...sampling, logitBias: {}, seed: 1, stop: [], ignoreEos: false };
  const [row] = await pipeline.createRows({ id: 'request', input, checkpoints: new Map() });
  while (!row.isDone) {
    const { failures } = await pipeline.step([row]);
    for (const error of failures.values()) throw error;
  }
  const { data } = await pipeline.finish(row);
  pipeline.release(row);
  answers.push({ prompt, text: new TextDecoder().decode(data) });
}
console.log(JSON.stringify({ answers, mode: card.mode, deterministic: pipeline.card.deterministic }));
await pipeline.dispose();
