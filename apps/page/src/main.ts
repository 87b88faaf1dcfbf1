import type { PictureModel, PictureRequest, TextModel } from '@darkroom/client';
import { Gallery } from './picture/gallery.ts';
import { createModelFields } from './picture/model-fields.ts';
import { createPictureReader } from './picture/read-picture.ts';
import { createRequestForm } from './picture/request-form.ts';
import { createStyleChips } from './picture/style-chips.ts';
import { createGalleryStorage, galleryKey } from './requests/gallery-storage.ts';
import { createRequestInputs } from './requests/request-inputs.ts';
import { createStreamSlots, slotCountOf } from './requests/stream-slots.ts';
import { errorWords } from './server/error-words.ts';
import { createPoller } from './server/poller.ts';
import { openSession } from './server/session.ts';
import { type Connection, watchedFetch } from './server/watched-fetch.ts';
import { announce, showBanner } from './shell/announce.ts';
import { findElement } from './shell/find-element.ts';
import { createKeyDialog } from './shell/key-dialog.ts';
import { openPageStorage } from './shell/page-storage.ts';
import { startThemeButton } from './shell/theme.ts';
import { startViews, type ViewName } from './shell/views.ts';
import { StartPicture } from './start/start-picture.ts';
import { chatKey } from './write/chat-storage.ts';
import { createWritePrompt } from './write/write-prompt.ts';
import { WriteView } from './write/write-view.ts';
import { createWriters } from './write/writers.ts';

const lookAgainMs = 3000;

const form = findElement(document, '#request', HTMLFormElement);
const prompt = findElement(form, '#prompt', HTMLTextAreaElement);

let shownView: ViewName = 'picture';
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
  pause();
  resume();
});

const styles = createStyleChips(form);
const start = new StartPicture(form);
const pictureModels = createModelFields(form, (model, isChosen) => {
  styles.showModel(model);
  start.showModel(model, isChosen);
});
const inputs = createRequestInputs(session);
const slots = createStreamSlots(slotCountOf(protocolOfPage()));
const gallery = new Gallery({
  storage: createGalleryStorage(storage),
  session,
  slots,
  inputs,
  onAgain({ id, request }) {
    requestForm.fill(request);
    if (request.image !== undefined)
      void start.fill(async (name) => (request[name] === undefined ? undefined : inputs.read(id, name)));
    prompt.scrollIntoView({ block: 'center' });
    prompt.focus({ preventScroll: true });
  },
});
const submit = async (request: PictureRequest): Promise<string> => {
  const { request_id: id } = await session.client.submit(request);
  gallery.add({ id, createdAtMs: Date.now(), request: inputs.keep(id, request) });
  announce(`Submitted: ${request.prompt}`);
  return id;
};
const parts = {
  read: async () => ({ ...(await start.read()), loras: styles.chosen }),
  fill(request: PictureRequest): void {
    start.clear();
    styles.choose(request.loras);
  },
};
const requestForm = createRequestForm(form, parts, async (request) => void (await submit(request)));

createPictureReader(findElement(document, '.maker', HTMLElement), (made) => requestForm.fillWith(made));

const chosenWriter = (): string | undefined => writers.chosen;
const writeView = new WriteView({
  storage,
  session,
  slots,
  chosenWriter,
  async draw(words) {
    const request = await requestForm.requestFor(words);
    // Without a name the server would choose one, of whatever kind.
    return request.model === undefined ? undefined : submit(request);
  },
  watchPicture: (id, onChange) => gallery.watch(id, onChange),
});
const writePrompt = createWritePrompt(form, session, chosenWriter);
const writers = createWriters(storage, () => {
  writeView.showWriters();
  writePrompt.showWriters();
});

/** Asks for the models until a worker serves one of what is shown, as on a system that has just been started. */
const models = createPoller(lookAgainMs, async (signal) => {
  try {
    const all = await session.client.models({ signal });
    pictureModels.show(all.filter((model): model is PictureModel => model.kind === 'picture'));
    writers.show(all.filter((model): model is TextModel => model.kind === 'text'));
    const shownKind = shownView === 'write' ? 'text' : 'picture';
    return !all.some(({ kind, is_possible }) => kind === shownKind && is_possible);
  } catch (error) {
    if (!signal.aborted) for (const each of [pictureModels, writers]) each.showProblem(errorWords(error));
    return true;
  }
});

startThemeButton(storage);
startViews((view) => {
  shownView = view;
  models.start();
});
addEventListener('storage', ({ key }) => {
  if (key === galleryKey) gallery.sync();
  if (key === chatKey && !document.hidden) writeView.resume();
});
document.addEventListener('visibilitychange', () => followWhileSeen());
document.addEventListener('keydown', (event) => {
  const isTyping = (event.target as Element).matches('input, textarea, select');
  if (event.key !== '/' || isTyping || document.querySelector('dialog[open]') !== null) return;
  event.preventDefault();
  if (shownView === 'write') writeView.focus();
  else prompt.focus();
});
gallery.sync();
followWhileSeen();

/** A page that nobody sees gives its connections back, and begins none: browsers have few for one server. */
function followWhileSeen(): void {
  if (document.hidden) pause();
  else resume();
}

function pause(): void {
  gallery.pause();
  writeView.pause();
}

function resume(): void {
  gallery.resume();
  writeView.resume();
}

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
