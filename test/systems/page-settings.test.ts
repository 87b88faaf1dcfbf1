/** The page of a server with keys. */
import { expect, it, onTestFinished } from 'vitest';
import { launchChromium, openPage } from '../e2e/chromium.ts';
import { openSystem } from '../e2e/system.ts';

it('asks for an API key where the server wants one, and fetches pictures with it', async () => {
  const guarded = await openSystem({ environment: { API_KEYS: 'alice:secret' } });
  const browser = await launchChromium();
  onTestFinished(() => browser.close());
  const page = await openPage(browser, guarded.url);
  const dialog = page.getByRole('dialog', { name: 'API key' });
  await dialog.getByText('The server wants an API key').waitFor();
  // A browser sends nothing at all with such a header, which would look like a server that is away.
  await dialog.getByLabel('Key', { exact: true }).fill('“secret”');
  await page.keyboard.press('Enter');
  expect(await dialog.isVisible()).toBe(true);
  await dialog.getByLabel('Key', { exact: true }).fill('secret');
  await page.keyboard.press('Enter');
  await expect.poll(() => page.getByLabel('Steps', { exact: true }).inputValue()).toBe('20');
  await page.getByLabel('Prompt', { exact: true }).fill('a cat');
  await page.getByLabel('Steps', { exact: true }).fill('4');
  await page.getByRole('button', { name: 'Develop' }).click();
  const card = page.getByRole('article', { name: 'a cat' });
  await card.locator('img.final').waitFor();
  await card.getByRole('button', { name: 'Copy as curl' }).click();
  await card.getByRole('button', { name: 'Copied' }).waitFor();
  const line = await page.evaluate<string>('navigator.clipboard.readText()');
  expect(line).toContain('$DARKROOM_API_KEY');
  expect(line).not.toContain('secret');
  await page.reload();
  await card.locator('img.final').waitFor();
});
