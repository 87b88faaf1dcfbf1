/** What a text must be like, and which tools it may call: as OpenAI's chat completions have them. Other fields of theirs are let pass. */

/** A call of a tool, as it stands in a text. */
export interface ToolCall {
  /** The same whenever it is asked for. */
  id: string;
  type: 'function';
  function: {
    name: string;
    /** JSON; the beginning of it where the text was cut. */
    arguments: string;
  };
}

/** A call in a conversation that goes on. */
export interface SentToolCall {
  id?: string;
  type?: 'function';
  function: { name: string; arguments: string | Record<string, unknown>; [field: string]: unknown };
  [field: string]: unknown;
}

export interface Tool {
  type: 'function';
  function: {
    /** 1 to 64 of the letters a to z and A to Z, digits, `_` and `-`. */
    name: string;
    description?: string | null;
    /** A JSON Schema of an object. Default: none are taken. */
    parameters?: { type: 'object'; [keyword: string]: unknown } | null;
    strict?: boolean | null;
    [field: string]: unknown;
  };
  [field: string]: unknown;
}

export type ToolChoice =
  | 'auto'
  | 'none'
  | 'required'
  | { type: 'function'; function: { name: string; [field: string]: unknown }; [field: string]: unknown };

export type ResponseFormat =
  | { type: 'text' | 'json_object'; [field: string]: unknown }
  | {
      type: 'json_schema';
      /** What a schema cannot say here is refused by its place. */
      json_schema: {
        name?: string;
        schema: Record<string, unknown>;
        strict?: boolean | null;
        [field: string]: unknown;
      };
      [field: string]: unknown;
    };
