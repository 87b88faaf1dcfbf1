import { createHash } from 'node:crypto';

const ulidLength = 26;
const idPattern = /^msg_[0-9a-hjkmnp-tv-z]{26}_[1-9]\d{0,14}_[0-9a-f]{8}$/;

/**
 * Creates the `webhook-id` of an event: the same in every process, so moving an event twice makes one message. It
 * contains only the ULID of the request id, because model names may contain dots, which separate the parts of the
 * signed content. The last part filters the messages of an owner without reading them.
 */
export function createWebhookId(requestId: string, sequence: number, owner: string): string {
  return `msg_${requestId.slice(-ulidLength)}_${sequence}_${ownerTag(owner)}`;
}

/**
 * Returns whether a message id may belong to this owner. Tags are short and may collide, so check the message as well.
 */
export function mayBeOwnedBy(id: string, owner: string): boolean {
  return idPattern.test(id) && id.endsWith(`_${ownerTag(owner)}`);
}

function ownerTag(owner: string): string {
  return createHash('sha256').update(owner).digest('hex').slice(0, 8);
}
