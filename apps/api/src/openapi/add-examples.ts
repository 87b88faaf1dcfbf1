import { answerExamples } from './answer-examples.ts';

interface Operation {
  operationId?: string;
  responses?: Record<string, { content?: Record<string, { example?: unknown }> }>;
}

/** Adds recorded answers to an OpenAPI document, in place, as the examples of its JSON responses. */
export function addExamples(document: { paths?: object }): void {
  for (const item of Object.values(document.paths ?? {}) as Record<string, Operation>[]) {
    for (const { operationId = '', responses = {} } of Object.values(item)) {
      for (const [status, example] of Object.entries(answerExamples[operationId] ?? {})) {
        const content = responses[status]?.content?.['application/json'];
        if (content !== undefined) content.example = example;
      }
    }
  }
}
