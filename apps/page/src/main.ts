import { createGallery } from './picture/gallery.ts';
import { createModelFields } from './picture/model-fields.ts';
import { createRequestForm } from './picture/request-form.ts';
import { createGalleryStorage, galleryKey } from './requests/gallery-storage.ts';
import { createStreamSlots, slotCountOf } from './requests/stream-slots.ts';
import { openSession } from './server/session.ts';
import { type Connection, watchedFetch } from './server/watched-fetch.ts';
import { announce, showBanner } from './shell/announce.ts';
import { findElement } from './shell/find-element.ts';
import { createKeyDialog } from './shell/key-dialog.ts';
import { openPageStorage } from './shell/page-storage.ts';
import { startThemeButton } from './shell/theme.ts';

const form = findElement(document, '#request', HTMLFormElement);
const prompt = findElement(form, '#prompt', HTMLTextAreaElement);

const storage = openPageStorage();
const session = openSession({
  storage,
  keyName: 'darkroom.api-key',
  fetch: watchedFetch(showConnection),
  // For as long as somebody looks at it; the banner says what is wrong.
  maxRetries: Number.POSITIVE_INFINITY,
});
const askForKey = createKeyDialog((key) => {
  session.setKey(key);
  models.start();
  gallery.pause();
  gallery.resume();
});

const models = createModelFields(form, session);
const gallery = createGallery({
  storage: createGalleryStorage(storage),
  session,
  slots: createStreamSlots(slotCountOf(protocolOfPage())),
  onAgain(request) {
    requestForm.fill(request);
    prompt.scrollIntoView({ block: 'center' });
    prompt.focus({ preventScroll: true });
  },
});
const requestForm = createRequestForm(form, async (request) => {
  const { request_id: id } = await session.client.submit(request);
  gallery.add({ id, createdAtMs: Date.now(), request });
  announce(`Submitted: ${request.prompt}`);
});

startThemeButton(storage);
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
models.start();

function showConnection(connection: Connection): void {
  if (connection === 'unauthorized') askForKey();
  const words = {
    good: '',
    unauthorized: '',
    unreachable: 'The server cannot be reached. Nothing is lost; trying again…',
    unready: 'The server has no time right now. Trying again…',
  };
  showBanner('connection', words[connection]);
}

function protocolOfPage(): string | undefined {
  const [navigation] = performance.getEntriesByType('navigation') as PerformanceNavigationTiming[];
  return navigation?.nextHopProtocol;
}
