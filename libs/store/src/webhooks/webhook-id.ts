import { createHash } from 'node:crypto';

const ulidLength = 26;
const idPattern = /^msg_[0-9a-hjkmnp-tv-z]{26}_[1-9]\d{0,14}_[0-9a-f]{8}$/;

/**
 * The `webhook-id` of an event: the same whoever makes it, so that moving an event twice makes one message. Of the
 * request's id it has the ULID alone, since a model's name may hold the dots that separate the parts of what is signed.
 * The last part tells the messages of one owner apart from all others without reading them.
 */
export function createWebhookId(requestId: string, sequence: number, owner: string): string {
  return `msg_${requestId.slice(-ulidLength)}_${sequence}_${ownerTag(owner)}`;
}

/** Whether an id may be of this owner's messages; the message itself has the last word, as tags are short. */
export function mayBeOwnedBy(id: string, owner: string): boolean {
  return idPattern.test(id) && id.endsWith(`_${ownerTag(owner)}`);
}

function ownerTag(owner: string): string {
  return createHash('sha256').update(owner).digest('hex').slice(0, 8);
}
