/** Reads the SSE stream of `POST /generate`. */
import { EventSourceParserStream } from 'eventsource-parser/stream';

/** Data of `append` and `buffer_snapshot` events. */
interface FrameData {
  token_offset: number;
  absolute_start: number;
  absolute_end: number;
  text: string;
  token_ids: number[];
  nfe: number;
  finished: boolean;
}

export interface TextFrame {
  event: string | undefined;
  data: FrameData;
}

/** Yields frames as they arrive, up to the end. */
export async function* readTextFrames(response: Response): AsyncGenerator<TextFrame, void> {
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
  const events = response.body!.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream());
  for await (const { event, data } of events)
    yield { event, data: (data === '[DONE]' ? data : JSON.parse(data)) as FrameData };
}

export async function frames(response: Response): Promise<TextFrame[]> {
  const all: TextFrame[] = [];
  for await (const frame of readTextFrames(response)) all.push(frame);
  return all;
}

export function textOf(appended: readonly TextFrame[]): string {
  return appended.map(({ data }) => data.text).join('');
}
