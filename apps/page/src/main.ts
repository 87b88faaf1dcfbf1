import { announce } from './announce.ts';
import { findElement } from './find-element.ts';
import { createGalleryStorage, galleryKey } from './gallery-storage.ts';
import { createGallery } from './gallery.ts';
import { createKeyDialog } from './key-dialog.ts';
import { createModelFields } from './model-fields.ts';
import { createModelList } from './model-list.ts';
import { createRequestForm } from './request-form.ts';
import { openPageStorage } from './page-storage.ts';
import { openSession } from './session.ts';
import { createStreamSlots, slotCountOf } from './stream-slots.ts';
import { addThemeButton } from './theme.ts';
import type { Connection } from './watched-fetch.ts';

const form = findElement(document, '#request', HTMLFormElement);
const prompt = findElement(form, '#prompt', HTMLTextAreaElement);

// Reading the property is what a browser refuses that blocks it.
const storage = openPageStorage(() => localStorage);
const session = openSession({ location: location.href, storage, onConnection: showConnection });
const keyDialog = createKeyDialog((key) => {
  session.setApiKey(key);
  models.load();
  gallery.pause();
  gallery.resume();
});

const modelFields = createModelFields(form);
const models = createModelList({
  session,
  onModels: (found) => modelFields.show(found),
  onProblem: (words) => (findElement(form, '#model-hint', HTMLParagraphElement).textContent = words),
});

const gallery = createGallery({
  elements: {
    cards: findElement(document, '#cards', HTMLOListElement),
    title: findElement(document, '#gallery-title', HTMLHeadingElement),
    count: findElement(document, '#gallery-count', HTMLParagraphElement),
    empty: findElement(document, '#empty', HTMLParagraphElement),
  },
  storage: createGalleryStorage(storage),
  session,
  slots: createStreamSlots(slotCountOf(protocolOfPage())),
  announce,
  onAgain(request) {
    requestForm.fill(request);
    prompt.scrollIntoView({ block: 'center' });
    prompt.focus({ preventScroll: true });
  },
});

const requestForm = createRequestForm({
  form,
  submit: (request) => session.client.submit(request),
  onAccepted({ request_id: id }, request) {
    gallery.add({ id, createdAtMs: Date.now(), request });
    announce(`Submitted: ${request.prompt}`);
  },
});

addThemeButton(findElement(document, '#theme', HTMLButtonElement), storage);
addEventListener('storage', ({ key }) => {
  if (key === galleryKey) gallery.sync();
});
// A page that nobody sees gives its connections back, and begins none: browsers have few for one server.
const followWhileSeen = (): void => (document.hidden ? gallery.pause() : gallery.resume());
document.addEventListener('visibilitychange', followWhileSeen);
document.addEventListener('keydown', (event) => {
  const isTyping = (event.target as Element).matches('input, textarea, select');
  if (event.key !== '/' || isTyping || document.querySelector('dialog[open]') !== null) return;
  event.preventDefault();
  prompt.focus();
});
followWhileSeen();
gallery.sync();
models.load();

function showConnection(connection: Connection): void {
  const banner = findElement(document, '#connection', HTMLParagraphElement);
  if (connection === 'unauthorized') keyDialog.ask();
  const words = {
    good: '',
    unauthorized: '',
    unreachable: 'The server cannot be reached. Nothing is lost; trying again…',
    unready: 'The server has no time right now. Trying again…',
  }[connection];
  if (banner.textContent !== words) banner.textContent = words;
  banner.hidden = words === '';
}

function protocolOfPage(): string | undefined {
  const [navigation] = performance.getEntriesByType('navigation') as PerformanceNavigationTiming[];
  return navigation?.nextHopProtocol;
}
