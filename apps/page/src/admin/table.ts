import { cloneTemplate, findElement, partOf } from '../shell/find-element.ts';
import type { SystemStatus } from './system-status.ts';

/** Words, and a colour that says the same; `held` is an operator's doing. */
export type Toned = [words: string, tone: 'good' | 'busy' | 'held' | 'bad'];

/** What a table shows, and what can be done there. */
export interface TableOptions<Item> {
  /** Of its body; its row is the template `<name>-row`, and `no-<name>` is shown while there is none. */
  name: 'models' | 'workers' | 'failures';
  itemsOf: (status: SystemStatus) => readonly Item[];
  /** Tells one item from another. */
  keyOf: (item: Item) => string;
  /** What its buttons call it. */
  nameOf: (item: Item) => string;
  /** The words of a row, by the `data-part` that they stand in. */
  wordsOf: (item: Item, status: SystemStatus) => Readonly<Record<string, string | Toned>>;
  /** Shows what is not words. */
  finish?: (row: HTMLTableRowElement, item: Item) => void;
  /** What its buttons do, by their `data-part`; resolves with what was done, in words, or undefined for nothing. */
  actions: Readonly<Record<string, (item: Item) => Promise<string | undefined>>>;
}

export type RunAction = (button: HTMLButtonElement, act: () => Promise<string | undefined>) => Promise<void>;

/** Rows that stay the same elements while their items change, so that nobody loses the focus or a selection. */
export function createTable<Item>(options: TableOptions<Item>, run: RunAction): (status: SystemStatus) => void {
  const { name, itemsOf, keyOf, actions } = options;
  const body = findElement(document, `#${name}`, HTMLTableSectionElement);
  const none = findElement(document, `#no-${name}`, HTMLParagraphElement);
  const rows = new Map<string, { row: HTMLTableRowElement; item: Item }>();
  const create = (item: Item): { row: HTMLTableRowElement; item: Item } => {
    const entry = { row: cloneTemplate(`${name}-row`, HTMLTableRowElement), item };
    for (const [part, act] of Object.entries(actions)) {
      const button = partOf(entry.row, part, HTMLButtonElement);
      button.addEventListener('click', () => void run(button, () => act(entry.item)));
    }
    return entry;
  };
  return (status) => {
    const items = itemsOf(status);
    none.hidden = items.length > 0;
    const keys = new Set(items.map(keyOf));
    for (const [key, { row }] of rows) {
      if (keys.has(key)) continue;
      row.remove();
      rows.delete(key);
    }
    for (const [position, item] of items.entries()) {
      const entry = rows.get(keyOf(item)) ?? create(item);
      entry.item = item;
      rows.set(keyOf(item), entry);
      fill(entry.row, item, status, options);
      if (body.children[position] !== entry.row) body.insertBefore(entry.row, body.children[position] ?? null);
    }
  };
}

function fill<Item>(
  row: HTMLTableRowElement,
  item: Item,
  status: SystemStatus,
  { nameOf, wordsOf, finish, actions }: TableOptions<Item>,
): void {
  for (const [part, content] of Object.entries(wordsOf(item, status))) {
    const element = partOf(row, part, HTMLElement);
    const [words, tone] = typeof content === 'string' ? [content] : content;
    if (tone !== undefined) element.dataset['tone'] = tone;
    // Left alone when it says so already: a selection in it stays, and nothing is read aloud again.
    if (element.textContent !== words) element.textContent = words;
  }
  for (const part of Object.keys(actions)) {
    const button = partOf(row, part, HTMLButtonElement);
    button.ariaLabel = `${button.textContent} ${nameOf(item)}`;
  }
  finish?.(row, item);
}
