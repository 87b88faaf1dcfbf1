export interface FilePlace {
  /** Where files may be dropped; it has `data-drop` while one is over it. */
  place: HTMLElement;
  /** What opens the browser's own dialog. */
  buttons: readonly HTMLButtonElement[];
  chooser: HTMLInputElement;
}

/** A file that is dropped on a place, or chosen for it. Words and links that are dropped go where they always went. */
export function listenForFiles({ place, buttons, chooser }: FilePlace, onFile: (file: File) => void): void {
  for (const button of buttons) button.addEventListener('click', () => chooser.click());
  chooser.addEventListener('change', () => {
    const [file] = chooser.files ?? [];
    if (file !== undefined) onFile(file);
    // The same one may be chosen again.
    chooser.value = '';
  });
  const show = (isOver: boolean): void => void place.toggleAttribute('data-drop', isOver);
  place.addEventListener('dragover', (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    show(true);
  });
  place.addEventListener('dragleave', ({ relatedTarget }) => {
    if (!place.contains(relatedTarget as Node | null)) show(false);
  });
  place.addEventListener('drop', (event) => {
    show(false);
    // What a place within this one has taken is not for this one too.
    if (!hasFiles(event) || event.defaultPrevented) return;
    event.preventDefault();
    const [file] = event.dataTransfer!.files;
    if (file !== undefined) onFile(file);
  });
}

function hasFiles({ dataTransfer }: DragEvent): boolean {
  return dataTransfer?.types.includes('Files') === true;
}
