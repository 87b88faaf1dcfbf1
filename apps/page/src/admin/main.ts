import { errorWords } from '../server/error-words.ts';
import { createPoller } from '../server/poller.ts';
import { announce, showBanner } from '../shell/announce.ts';
import { findElement } from '../shell/find-element.ts';
import { createKeyDialog } from '../shell/key-dialog.ts';
import { openPageStorage } from '../shell/page-storage.ts';
import { startThemeButton } from '../shell/theme.ts';
import { isRefusal, needsKey, openAdminSession } from './admin-session.ts';
import { failuresTable } from './failures-table.ts';
import { keysTable } from './keys-table.ts';
import { startKeyForm } from './key-form.ts';
import { modelsTable } from './models-table.ts';
import { refusedFilesTable } from './refused-files-table.ts';
import { createTable, type RunAction } from './table.ts';
import { workersTable } from './workers-table.ts';

const intervalMs = 2000;

const storage = openPageStorage();
const session = openAdminSession(storage);
const asOf = findElement(document, '#as-of', HTMLParagraphElement);
const openKeyDialog = createKeyDialog((key) => {
  session.setKey(key);
  poller.start();
});

/** Runs one action at a time per button. */
const run: RunAction = async (button, act) => {
  // Not `disabled`, which would move the focus.
  if (button.ariaBusy === 'true') return;
  button.ariaBusy = 'true';
  showBanner('problem', '');
  try {
    const words = await act();
    if (words !== undefined) announce(words);
  } catch (error) {
    showProblem('problem', error);
  }
  button.ariaBusy = null;
  pollWhileVisible();
};
const tables = [
  createTable(modelsTable(session), run),
  createTable(workersTable(session), run),
  createTable(refusedFilesTable(), run),
  createTable(failuresTable(session), run),
  createTable(keysTable(session), run),
];
startKeyForm(session, run);

const poller = createPoller(intervalMs, async () => {
  try {
    const status = await session.readSystem();
    for (const show of tables) show(status);
    asOf.textContent = `As of ${new Date(status.time).toLocaleTimeString()}`;
    showBanner('connection', '');
    return true;
  } catch (error) {
    showProblem('connection', error);
    if (isRefusal(error)) asOf.textContent = '';
    // Stop polling on a refusal: otherwise the key dialog would open again right after it is closed.
    return !isRefusal(error);
  }
});

startThemeButton(storage);
// A hidden page does not poll.
const pollWhileVisible = (): void => (document.hidden ? poller.stop() : poller.start());
document.addEventListener('visibilitychange', pollWhileVisible);
pollWhileVisible();

function showProblem(banner: 'connection' | 'problem', error: unknown): void {
  showBanner(banner, errorWords(error));
  if (needsKey(error)) openKeyDialog();
}
