import { expect, it } from 'vitest';
import { z } from 'zod';
import { messageFromEngine, messageToEngine, protocolVersion, results } from './engine-protocol.ts';

const schemaOf = (schema: z.ZodType) => z.toJSONSchema(schema, { unrepresentable: 'any' });

// A change of the schema is a change of the protocol: count its version up, and run this test with `-u`.
it('docs/engine-protocol.schema.json has the schema of the messages', async () => {
  const replies = Object.fromEntries(Object.entries(results).map(([name, schema]) => [name, schemaOf(schema)]));
  const document = {
    version: protocolVersion,
    toEngine: schemaOf(messageToEngine),
    fromEngine: schemaOf(messageFromEngine),
    values: replies,
  };
  await expect(`${JSON.stringify(document, undefined, 2)}\n`).toMatchFileSnapshot(
    '../../../../docs/engine-protocol.schema.json',
  );
});
