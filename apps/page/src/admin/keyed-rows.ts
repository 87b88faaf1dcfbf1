import { cloneTemplate, findElement } from '../find-element.ts';

export interface KeyedRowsOptions<Item> {
  body: HTMLTableSectionElement;
  /** Id of the template with the row. */
  template: string;
  keyOf: (item: Item) => string;
  /** Makes a new row work; `current` is what was shown in it last. */
  prepare: (row: HTMLTableRowElement, current: () => Item) => void;
  fill: (row: HTMLTableRowElement, item: Item) => void;
}

/** Rows that stay the same elements while their items change, so that nobody loses the focus or a selection. */
export function createKeyedRows<Item>(options: KeyedRowsOptions<Item>): (items: readonly Item[]) => void {
  const { body, template, keyOf, prepare, fill } = options;
  const rows = new Map<string, { row: HTMLTableRowElement; item: Item }>();
  const create = (item: Item): { row: HTMLTableRowElement; item: Item } => {
    const entry = { row: cloneTemplate(template, HTMLTableRowElement), item };
    prepare(entry.row, () => entry.item);
    return entry;
  };
  return (items) => {
    const keys = new Set(items.map(keyOf));
    for (const [key, { row }] of rows) {
      if (keys.has(key)) continue;
      row.remove();
      rows.delete(key);
    }
    for (const [position, item] of items.entries()) {
      const key = keyOf(item);
      const entry = rows.get(key) ?? create(item);
      entry.item = item;
      rows.set(key, entry);
      fill(entry.row, item);
      if (body.children[position] !== entry.row) body.insertBefore(entry.row, body.children[position] ?? null);
    }
  };
}

/** The element of a row with this `data-part`. */
export function partOf<Type extends Element>(row: ParentNode, part: string, type: new () => Type): Type {
  return findElement(row, `[data-part=${part}]`, type);
}

/** Left alone when it says so already: a selection in it stays, and nothing is read aloud again. */
export function setText(row: ParentNode, part: string, text: string): void {
  const element = partOf(row, part, HTMLElement);
  if (element.textContent !== text) element.textContent = text;
}
