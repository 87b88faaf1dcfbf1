/** Loads BullMQ on first use: it is half of all modules, and workers and formers deliver no webhooks. */
import { createRequire } from 'node:module';
import type * as Bullmq from 'bullmq';
import type * as BullmqOtel from 'bullmq-otel';

const load = createRequire(import.meta.url);

export const bullmq = (): typeof Bullmq => load('bullmq') as typeof Bullmq;
export const bullmqOtel = (): typeof BullmqOtel => load('bullmq-otel') as typeof BullmqOtel;
