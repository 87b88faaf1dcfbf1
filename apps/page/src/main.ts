import type { ImageModel, ImageRequest, TextModel } from '@darkroom/client';
import { Gallery } from './image/gallery.ts';
import { createDraft } from './image/draft.ts';
import { createExamples } from './image/examples.ts';
import { createFormProblem } from './image/form-problem.ts';
import { createModelFields } from './image/model-fields.ts';
import { createSettingsReader } from './image/read-image.ts';
import { createRequestForm } from './image/request-form.ts';
import { createStyleChips } from './image/style-chips.ts';
import { createGalleryStorage, type GalleryEntry, galleryKey } from './requests/gallery-storage.ts';
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
import { rememberOpen } from './shell/remember-open.ts';
import { startThemeButton } from './shell/theme.ts';
import { startViews, type ViewName } from './shell/views.ts';
import { StartImage } from './start/start-image.ts';
import { startTrayTools } from './tray/tray-tools.ts';
import { createImageActions } from './viewer/image-actions.ts';
import { ImageViewer } from './viewer/image-viewer.ts';
import { chatKey } from './write/chat-storage.ts';
import { createWritePrompt } from './write/write-prompt.ts';
import { WriteView } from './write/write-view.ts';
import { createWriters } from './write/writers.ts';

const pollIntervalMs = 3000;

const form = findElement(document, '#request', HTMLFormElement);
const prompt = findElement(form, '#prompt', HTMLTextAreaElement);

let shownView: ViewName = 'image';
const storage = openPageStorage();
const session = openSession({
  storage,
  keyName: 'darkroom.api-key',
  fetch: watchedFetch(showConnection),
  // Retry for as long as the page is open; the banner shows the problem.
  maxRetries: Number.POSITIVE_INFINITY,
});
const openKeyDialog = createKeyDialog((key) => {
  session.setKey(key);
  models.start();
  pause();
  resume();
});

const problem = createFormProblem(form);
const styles = createStyleChips(form);
rememberOpen(findElement(form, '#more', HTMLDetailsElement), storage);
const start = new StartImage(form);
const imageModels = createModelFields(form, (model, isChosen) => {
  styles.showModel(model);
  start.showModel(model, isChosen);
  examples.showModel(model);
  draft.showModel();
});
const draft = createDraft({ form, storage, styles });
const inputs = createRequestInputs(session);
const slots = createStreamSlots(slotCountOf(protocolOfPage()));
const gallery = new Gallery({
  storage: createGalleryStorage(storage),
  session,
  slots,
  inputs,
  imageReader: () => writers.imageReader,
  onAgain(entry) {
    fillAgain(entry);
    prompt.focus();
  },
  onOpen: (id, index) => viewer.open(id, index),
});
const fillAgain = ({ id, request }: GalleryEntry): void => {
  requestForm.fill(request);
  if (request.image !== undefined)
    void start.fill(async (name) => (request[name] === undefined ? undefined : inputs.read(id, name)));
};
const submit = async (request: ImageRequest): Promise<string> => {
  const { request_id: id } = await session.client.submit(request);
  gallery.add({ id, createdAtMs: Date.now(), request: inputs.keep(id, request) });
  announce(`Submitted: ${request.prompt}`);
  return id;
};
const parts = {
  read: async () => ({ ...(await start.read()), loras: styles.chosen }),
  fill(request: ImageRequest): void {
    start.clear();
    styles.choose(request.loras);
  },
};
const requestForm = createRequestForm({ form, parts, problem }, async (request) => void (await submit(request)));

const examples = createExamples(({ prompt: words, seed }) => {
  // In the form too, so that it can be changed.
  if (prompt.value.trim() === '') prompt.value = words;
  submit(requestForm.requestFor(words, seed)).catch((error: unknown) => problem.show(errorWords(error)));
  findElement(document, '#gallery-title', HTMLHeadingElement).focus();
});

createSettingsReader(findElement(document, '.maker', HTMLElement), (made) => requestForm.fillWith(made));

const viewer = new ImageViewer({
  session,
  inputs,
  images: () => gallery.images,
  modelOf: imageModels.modelOf,
  imageReader: () => writers.imageReader,
  canStart: () => start.isPossible,
  actions: createImageActions({
    submit,
    modelOf: imageModels.modelOf,
    fill: fillAgain,
    async startFrom(file, words) {
      await start.choose(file);
      if (prompt.value.trim() === '') prompt.value = words;
    },
    showForm() {
      views.show('image');
      prompt.focus();
    },
    showRequest(id) {
      views.show('image');
      gallery.focus(id);
    },
  }),
});

const chosenWriter = (): string | undefined => writers.chosen;
const writeView = new WriteView({
  storage,
  session,
  slots,
  chosenWriter,
  async draw(words) {
    const request = requestForm.requestFor(words);
    // Without a model in the request, the server would choose one of any kind.
    return request.model === undefined ? undefined : submit(request);
  },
  watchImage: (id, onChange) => gallery.watch(id, onChange),
  openImage: (id, index) => viewer.open(id, index),
});
const writePrompt = createWritePrompt({ form, problem, session, chosenWriter });
const writers = createWriters(storage, () => {
  gallery.showModels();
  writeView.showWriters();
  writePrompt.showWriters();
});

/** Polls the models until a worker serves one of the shown view's kind, as after a start of the system. */
const models = createPoller(pollIntervalMs, async (signal) => {
  try {
    const all = await session.client.models({ signal });
    imageModels.show(all.filter((model): model is ImageModel => model.kind === 'image'));
    writers.show(all.filter((model): model is TextModel => model.kind === 'text'));
    const shownKind = shownView === 'write' ? 'text' : 'image';
    return !all.some(({ kind, is_possible }) => kind === shownKind && is_possible);
  } catch (error) {
    if (!signal.aborted) for (const each of [imageModels, writers]) each.showProblem(errorWords(error));
    return true;
  }
});

startTrayTools(gallery, session, storage);
startThemeButton(storage);
const views = startViews((view) => {
  shownView = view;
  models.start();
});
addEventListener('storage', ({ key }) => {
  if (key === galleryKey) gallery.sync();
  if (key === chatKey && !document.hidden) writeView.resume();
});
document.addEventListener('visibilitychange', () => followWhileVisible());
document.addEventListener('keydown', (event) => {
  const isTyping = (event.target as Element).matches('input, textarea, select');
  if (event.key !== '/' || isTyping || document.querySelector('dialog[open]') !== null) return;
  event.preventDefault();
  if (shownView === 'write') writeView.focus();
  else prompt.focus();
});
gallery.sync();
followWhileVisible();

/** Disconnects the streams of a hidden page: browsers allow few connections per server. */
function followWhileVisible(): void {
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
  if (connection === 'unauthorized') openKeyDialog();
  const words = {
    good: '',
    unauthorized: '',
    unreachable: 'The server cannot be reached. Nothing is lost; trying again…',
    unready: 'The server is overloaded. Trying again…',
  };
  showBanner('connection', words[connection]);
}

function protocolOfPage(): string | undefined {
  const [navigation] = performance.getEntriesByType('navigation') as PerformanceNavigationTiming[];
  return navigation?.nextHopProtocol;
}
