/** The page of a server that requires API keys. */
import { expect, it, onTestFinished } from 'vitest';
import { launchChromium, openPage } from '../e2e/chromium.ts';
import { openSystem } from '../e2e/system.ts';

it('asks for an API key when the server requires one, and fetches images with it', async () => {
  const guarded = await openSystem({ environment: { API_KEYS: 'alice:secret-of-the-page' } });
  const browser = await launchChromium();
  onTestFinished(() => browser.close());
  const page = await openPage(browser, guarded.url);
  const dialog = page.getByRole('dialog', { name: 'API key' });
  await dialog.getByText('The server requires a valid API key').waitFor();
  // A browser refuses to send these quotes in a header, which would look like an unreachable server.
  await dialog.getByLabel('Key', { exact: true }).fill('“secret-of-the-page”');
  await page.keyboard.press('Enter');
  expect(await dialog.isVisible()).toBe(true);
  await dialog.getByLabel('Key', { exact: true }).fill('secret-of-the-page');
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
