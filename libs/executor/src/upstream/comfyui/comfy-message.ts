/** Messages of ComfyUI's WebSocket about one prompt. */
import { fieldOf, numberProperty, textProperty } from '../http/fields.ts';

export type ComfyMessage =
  | { type: 'progress'; node: string; value: number; max: number }
  | { type: 'preview'; data: Uint8Array }
  /** The prompt has left the queue: its history has the result. */
  | { type: 'done' }
  | { type: 'failed'; reason: string }
  | { type: 'interrupted' }
  /** Another sign of life of the prompt. */
  | { type: 'other' };

/** Event number of a preview, and its header: event and format, 4 bytes each. */
const previewEvent = 1;
const previewHeadBytes = 8;

/** Returns undefined for a message about another prompt, or about the server. */
export function readComfyMessage(message: string | Buffer, prompt: string): ComfyMessage | undefined {
  if (typeof message !== 'string') {
    const isPreview = message.length > previewHeadBytes && message.readUInt32BE(0) === previewEvent;
    return isPreview ? { type: 'preview', data: message.subarray(previewHeadBytes) } : undefined;
  }
  const json = JSON.parse(message) as unknown;
  const data = fieldOf(json, 'data');
  if (textProperty(data, 'prompt_id') !== prompt) return undefined;
  switch (textProperty(json, 'type') ?? '') {
    case 'progress':
      return {
        type: 'progress',
        node: textProperty(data, 'node') ?? '',
        value: numberProperty(data, 'value') ?? 0,
        max: numberProperty(data, 'max') ?? 0,
      };
    case 'executing':
      return { type: fieldOf(data, 'node') === null ? 'done' : 'other' };
    case 'execution_error':
      return { type: 'failed', reason: textProperty(data, 'exception_message') ?? '' };
    case 'execution_interrupted':
      return { type: 'interrupted' };
    default:
      return { type: 'other' };
  }
}
