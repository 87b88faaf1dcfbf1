/** A second kind of work, for tests of kind-neutral code: a text that is streamed and becomes an output at the end. */
import type { ModelCard } from '@darkroom/core';
import { type Kind, requestFields, resolveBody, textField } from '@darkroom/kinds';
import { z } from 'zod';

export interface EchoCard extends ModelCard {
  kind: 'echo';
  maxCharacters: number;
}

export interface EchoInput {
  prompt: string;
}

export const echoSchema = z.strictObject({ ...requestFields, prompt: textField(1, 100) });

export const echo: Kind<Partial<EchoInput>, EchoCard> = {
  id: 'echo',
  outputs: 'text',
  bodySchema: echoSchema,
  resolve: (body, { maxCharacters }, options) =>
    resolveBody(body, {
      schema: echoSchema,
      options,
      problemsOf: ({ prompt }) =>
        prompt.length <= maxCharacters
          ? []
          : [{ field: 'prompt', code: 'invalid_value', message: `prompt is longer than ${maxCharacters}` }],
      inputOf: ({ prompt }) => ({ prompt }),
    }),
  demandOf: ({ prompt = '' }) => ({
    shapeKey: 'echo',
    outputs: 1,
    slots: Math.ceil(prompt.length / 10),
    cost: prompt.length,
  }),
  stepsOf: ({ prompt = '' }) => prompt.length,
  withoutPrivate: () => ({}),
  modelView: ({ maxCharacters }) => ({ max_characters: maxCharacters }),
  requestView: ({ input, done }, [text = '']) => {
    const { prompt = null } = input as Partial<EchoInput>;
    return { prompt, characters: done, text };
  },
  resultView: (_id, [output]) => ({ finish_reason: output?.['finishReason'] ?? null }),
  progressView: ({ done }) => ({ characters: done }),
  eventView(_id, event) {
    switch (event.type) {
      case 'progress':
      case 'preview':
        return { name: event.type, data: { characters: event.done } };
      case 'delta':
      case 'snapshot':
        return { name: event.type, data: { offset: event.offset, text: event.text, ...event.facts } };
      case 'reset':
        return { name: event.type, data: { offset: event.offset } };
      case 'output':
        return { name: 'text', data: { bytes: event.output.bytes } };
    }
  },
};

/** A model of this kind. */
export const echoCard: EchoCard = {
  id: 'parrot',
  created: 1_700_000_000,
  ownedBy: 'tests',
  kind: 'echo',
  pipeline: 'EchoPipeline',
  maxCharacters: 50,
};
