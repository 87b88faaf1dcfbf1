import { findElement, partOf } from '../shell/find-element.ts';
import type { AdminSession } from './admin-session.ts';
import { confirmAction } from './confirm-action.ts';
import type { KeyView } from './system-status.ts';
import type { TableOptions } from './table.ts';
import { agoWords } from './time-words.ts';

/** The table of API keys, with buttons to revoke those that were added here. */
export function keysTable(session: AdminSession): TableOptions<KeyView & { position: number }> {
  return {
    name: 'keys',
    itemsOf({ keys }) {
      findElement(document, '#key-adder', HTMLFormElement).hidden = !keys.are_required;
      findElement(document, '#keys-off', HTMLParagraphElement).hidden = keys.are_required;
      return keys.data.map((key, position) => ({ ...key, position }));
    },
    keyOf: ({ id, source, position }) => id ?? `${source} ${position}`,
    nameOf: ({ name, id }) => `${name} ${id ?? ''}`,
    wordsOf: ({ name, id, source, created_at: createdAt, ...limits }, { time }) => ({
      name,
      id: id ?? '',
      weight: String(limits.weight),
      minute: String(limits.requests_per_minute ?? '–'),
      open: String(limits.open_requests ?? '–'),
      source: source === 'redis' ? 'added' : source,
      when: createdAt === null ? '–' : agoWords(createdAt, time),
    }),
    finish(row, { id }) {
      partOf(row, 'revoke', HTMLButtonElement).hidden = id === null;
    },
    actions: {
      async revoke({ name, id }) {
        const words = `The server rejects this key of ${name} (${id}) from now on. Requests that were sent with it continue.`;
        if (id === null || !(await confirmAction('revoke', words))) return undefined;
        await session.revokeKey(id);
        // Move the focus out of the row, which will be removed.
        findElement(document, '#keys-title', HTMLHeadingElement).focus();
        return `Revoked a key of ${name}.`;
      },
    },
  };
}
