import type { ImageRequest } from '@darkroom/client';
import { findElement } from '../shell/find-element.ts';
import type { PageStorage } from '../shell/page-storage.ts';
import { setField } from './model-fields.ts';

const draftName = 'darkroom.draft';
/** Lists, whose options come from the models. */
const lists = ['scheduler', 'upscale'];

interface Draft {
  values: Record<string, string>;
  loras?: ImageRequest['loras'];
}

export interface CreateDraftOptions {
  form: HTMLFormElement;
  storage: PageStorage;
  styles: { readonly chosen: ImageRequest['loras'] | undefined; choose: (loras: ImageRequest['loras']) => void };
}

/** Restores the form's values after a reload, without the input image, and stores them when the page is left. */
export function createDraft({ form, storage, styles }: CreateDraftOptions) {
  const { values, loras } = readDraft(storage);
  let hasLists = false;
  if (values['model'] !== undefined)
    findElement(form, '#model', HTMLSelectElement).replaceChildren(new Option(values['model']));
  for (const [name, value] of Object.entries(values))
    if (!lists.includes(name) && form.elements.namedItem(name) instanceof Element) setField(form, name, value);
  findElement(form, '#metadata', HTMLInputElement).checked = values['metadata'] === 'on';
  const save = (): void => {
    const entries = [...new FormData(form)].filter(([, value]) => typeof value === 'string');
    storage.setItem(draftName, JSON.stringify({ values: Object.fromEntries(entries), loras: styles.chosen }));
  };
  form.addEventListener('input', save);
  addEventListener('pagehide', save);
  return {
    /** Restores choices from lists, after the first model has filled them. */
    showModel(): void {
      if (hasLists) return;
      hasLists = true;
      for (const name of lists) if (values[name] !== undefined) setField(form, name, values[name]);
      if (loras !== undefined) styles.choose(loras);
    },
  };
}

function readDraft(storage: PageStorage): Draft {
  try {
    const draft = JSON.parse(storage.getItem(draftName) ?? '') as Partial<Draft>;
    const values = Object.entries(draft.values ?? {}).filter(([, value]) => typeof value === 'string');
    return { values: Object.fromEntries(values), ...(Array.isArray(draft.loras) && { loras: draft.loras }) };
  } catch {
    return { values: {} };
  }
}
