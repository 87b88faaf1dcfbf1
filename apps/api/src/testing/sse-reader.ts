/** One frame of a server-sent event stream: an event, a comment or a field alone. */
export interface Frame {
  id?: string;
  event?: string;
  data?: string;
  retry?: string;
  comment?: string;
}

export interface SseReader {
  /** Reads the next frame; undefined at the end. */
  next(): Promise<Frame | undefined>;
  /** Reads all frames up to the end. */
  rest(): Promise<Frame[]>;
  cancel(): Promise<void>;
}

export function readFrames(response: Response): SseReader {
  const reader = response.body!.getReader();
  const decoder = new TextDecoder();
  let buffered = '';
  async function next(): Promise<Frame | undefined> {
    for (;;) {
      const end = buffered.indexOf('\n\n');
      if (end >= 0) {
        const text = buffered.slice(0, end);
        buffered = buffered.slice(end + 2);
        return parseFrame(text);
      }
      const { done, value } = await reader.read();
      if (done) return undefined;
      buffered += decoder.decode(value, { stream: true });
    }
  }
  return {
    next,
    async rest() {
      const frames: Frame[] = [];
      for (let frame = await next(); frame !== undefined; frame = await next()) frames.push(frame);
      return frames;
    },
    cancel: () => reader.cancel(),
  };
}

function parseFrame(text: string): Frame {
  const frame: Record<string, string> = {};
  for (const line of text.split('\n')) {
    const [, name, value] = /^(\w*): (.*)$/.exec(line) ?? [];
    if (name === undefined || value === undefined) throw new Error(`invalid SSE line: ${line}`);
    frame[name === '' ? 'comment' : name] = value;
  }
  return frame;
}
