export interface FilePlace {
  /** Files may be dropped here; has the attribute `data-drop` while one is over it. */
  place: HTMLElement;
  /** Buttons that open the browser's file dialog. */
  buttons: readonly HTMLButtonElement[];
  chooser: HTMLInputElement;
}

/** Calls `onFile` for each file that is dropped or chosen. Dropped text and links keep their default behavior. */
export function listenForFiles({ place, buttons, chooser }: FilePlace, onFile: (file: File) => void): void {
  for (const button of buttons) button.addEventListener('click', () => chooser.click());
  chooser.addEventListener('change', () => {
    const [file] = chooser.files ?? [];
    if (file !== undefined) onFile(file);
    // Reset, so that the same file can be chosen again.
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
    // An inner drop zone has handled this event.
    if (!hasFiles(event) || event.defaultPrevented) return;
    event.preventDefault();
    const [file] = event.dataTransfer!.files;
    if (file !== undefined) onFile(file);
  });
}

function hasFiles({ dataTransfer }: DragEvent): boolean {
  return dataTransfer?.types.includes('Files') === true;
}
