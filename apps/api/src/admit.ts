import type { RequestEnvelope } from '@darkroom/core';
import { admitRequest, type AdmitRequestResult, cancelRequest } from '@darkroom/store';
import type { ApiContext } from './api-context.ts';

/**
 * Stores a request, if it may come in. A client that is told that Redis is away was promised nothing and will ask again:
 * what a Redis that hung stores after that answer is taken back, so that no worker draws it.
 */
export async function admit(context: ApiContext, envelope: RequestEnvelope): Promise<AdmitRequestResult> {
  const { queueMaxLength, unservedModels } = context.config;
  let admitting: Promise<AdmitRequestResult> | undefined;
  try {
    return await context.askStore((store) => {
      admitting = admitRequest(store, envelope, { queueMaxLength, unserved: unservedModels });
      return admitting;
    });
  } catch (error) {
    if (admitting !== undefined) void takeBack(context, envelope.id, admitting);
    throw error;
  }
}

async function takeBack({ askStore, clock, log }: ApiContext, id: string, admitting: Promise<unknown>): Promise<void> {
  await admitting.catch(() => {});
  try {
    const { status } = await askStore((store) => cancelRequest(store, id, { nowMs: clock.now() }));
    log.info({ request_id: id, status }, 'took back what was stored too late');
  } catch {
    // Away again. If it was stored at all, it is drawn for nobody or ends at its deadline.
    log.warn({ request_id: id }, 'could not take back what may be stored');
  }
}
