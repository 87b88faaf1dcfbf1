/** Automatic checks of accessibility. */
import axe from 'axe-core';
import type { Page } from 'playwright-core';

/** Returns the findings of axe on the page as it is shown now: the rule and the elements of each. */
export async function axeFindings(page: Page): Promise<string[]> {
  // Not a script element, which the page's Content-Security-Policy blocks.
  await page.evaluate(axe.source);
  const { violations } = await page.evaluate<axe.AxeResults>(`axe.run()`);
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(', ')}`);
}
