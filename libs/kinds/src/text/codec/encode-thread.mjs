/** What `encoding-thread.ts` runs: ids of texts, one after the other, with the tokenizer of one codec document. */
import { parentPort, workerData } from 'node:worker_threads';
import { Tokenizer } from '@huggingface/tokenizers';

const { tokenizer: definition, config } = JSON.parse(new TextDecoder().decode(workerData));
const tokenizer = new Tokenizer(definition, config);

/** UTF-16 units. The time of a text without spaces grows faster than its length. */
const pieceLength = 4096;

/** Ids of the beginning, read in pieces, if they are more than `most`; undefined if the whole has no more. */
function tooMany(text, most) {
  const ids = [];
  for (let at = 0; at < text.length && ids.length <= most; at += pieceLength) {
    const piece = text.slice(at, at + pieceLength);
    for (const id of tokenizer.encode(piece, { add_special_tokens: false }).ids) ids.push(id);
  }
  return ids.length > most ? ids : undefined;
}

parentPort.on('message', ({ text, most, addSpecialTokens }) => {
  const ids = tooMany(text, most) ?? tokenizer.encode(text, { add_special_tokens: addSpecialTokens }).ids;
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has none
  parentPort.postMessage(ids);
});
