import { cloneTemplate, findElement, partOf } from '../shell/find-element.ts';
import type { SystemStatus } from './system-status.ts';

/** A text and its color; `held` marks states that an operator caused. */
export type Toned = [words: string, tone: 'good' | 'busy' | 'held' | 'bad'];

/** The contents and actions of a table. */
export interface TableOptions<Item> {
  /** Id of the table's body. The template of a row is `<name>-row`, and `no-<name>` is shown if there are no rows. */
  name: 'models' | 'workers' | 'refused' | 'failures' | 'keys';
  itemsOf: (status: SystemStatus) => readonly Item[];
  /** Returns a unique key of an item. */
  keyOf: (item: Item) => string;
  /** Returns the item's name in the labels of its buttons. */
  nameOf: (item: Item) => string;
  /** Returns the texts of a row, by their `data-part`. */
  wordsOf: (item: Item, status: SystemStatus) => Readonly<Record<string, string | Toned>>;
  /** Updates parts that are not text. */
  finish?: (row: HTMLTableRowElement, item: Item) => void;
  /** Actions of the buttons, by their `data-part`; resolve with a message, or undefined if nothing was done. */
  actions: Readonly<Record<string, (item: Item) => Promise<string | undefined>>>;
}

export type RunAction = (button: HTMLButtonElement, act: () => Promise<string | undefined>) => Promise<void>;

/** Creates a table that reuses a row's elements when its item changes, so that focus and selection are preserved. */
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
    // Do not write an unchanged text: a selection is preserved, and screen readers do not read it again.
    if (element.textContent !== words) element.textContent = words;
  }
  for (const part of Object.keys(actions)) {
    const button = partOf(row, part, HTMLButtonElement);
    button.ariaLabel = `${button.textContent} ${nameOf(item)}`;
  }
  finish?.(row, item);
}
