import { OwnerTurns } from '@darkroom/core';
import { expect, it } from 'vitest';
import { takeTurn } from './take-turn.ts';

it('ends a wait on timeout or disconnect, and moves the next ones up', async () => {
  const turns = new OwnerTurns({ concurrency: 1 });
  const anonymous = { owner: '', signal: new AbortController().signal };
  const leave = await takeTurn(turns, anonymous, 20);
  const refusal = { status: 503, headers: { 'Retry-After': '5' } };
  await expect(takeTurn(turns, anonymous, 20)).rejects.toMatchObject(refusal);
  const client = new AbortController();
  const gone = takeTurn(turns, { owner: '', signal: client.signal }, 60_000);
  const behind = takeTurn(turns, anonymous, 60_000);
  client.abort();
  await expect(gone).rejects.toMatchObject({ code: 'client_gone' });
  leave();
  (await behind)();
  const late = takeTurn(turns, { owner: '', signal: client.signal }, 60_000);
  await expect(late).rejects.toMatchObject({ code: 'client_gone' });
});
