import { announce } from '../announce.ts';
import { errorWords } from '../error-words.ts';
import { findElement } from '../find-element.ts';
import { createKeyDialog } from '../key-dialog.ts';
import { openPageStorage } from '../page-storage.ts';
import { addThemeButton } from '../theme.ts';
import { createActionRunner } from './action-runner.ts';
import { isRefusal, openAdminSession } from './admin-session.ts';
import { createDropDialog } from './drop-dialog.ts';
import { createFailuresTable } from './failures-table.ts';
import { createModelsTable } from './models-table.ts';
import { createPoller } from './poller.ts';
import { createWorkersTable } from './workers-table.ts';

const intervalMs = 2000;

// Reading the property is what a browser refuses that blocks it.
const storage = openPageStorage(() => localStorage);
const session = openAdminSession({ location: location.href, storage });
const asOf = findElement(document, '#as-of', HTMLParagraphElement);
const keyDialog = createKeyDialog((key) => {
  session.setKey(key);
  poller.start();
});

const run = createActionRunner({
  onStart: () => showWords('problem', ''),
  onDone(words) {
    announce(words);
    askWhileSeen();
  },
  onProblem(error) {
    showProblem('problem', error);
    askWhileSeen();
  },
});
const tables = [
  createModelsTable(session, run),
  createWorkersTable(session, run),
  createFailuresTable({ session, run, confirmDrop: createDropDialog() }),
];

const poller = createPoller({
  intervalMs,
  async poll() {
    try {
      const status = await session.readSystem();
      for (const show of tables) show(status);
      asOf.textContent = `As of ${new Date(status.time).toLocaleTimeString()}`;
      showWords('connection', '');
      return true;
    } catch (error) {
      showProblem('connection', error);
      // Who closes the dialog without a key is not asked again and again.
      return !isRefusal(error);
    }
  },
});

addThemeButton(findElement(document, '#theme', HTMLButtonElement), storage);
// A page that nobody sees asks for nothing.
const askWhileSeen = (): void => (document.hidden ? poller.stop() : poller.start());
document.addEventListener('visibilitychange', askWhileSeen);
askWhileSeen();

/** Of the connection, until it is good again; of what was to be done, until something else is. */
type Banner = 'connection' | 'problem';

function showProblem(banner: Banner, error: unknown): void {
  showWords(banner, errorWords(error));
  if (isRefusal(error)) keyDialog.ask();
}

function showWords(banner: Banner, words: string): void {
  const element = findElement(document, `#${banner}`, HTMLParagraphElement);
  if (element.textContent !== words) element.textContent = words;
  element.hidden = words === '';
}
