import { findElement } from './find-element.ts';

export type ViewName = 'picture' | 'write';

/** Shows one of the page's views, as the address says (`#write`), so that a reload and the browser's buttons do what they do. */
export function startViews(onShow: (view: ViewName) => void): { show: (view: ViewName) => void } {
  const show = (): void => {
    const shown: ViewName = location.hash === '#write' ? 'write' : 'picture';
    for (const view of document.querySelectorAll<HTMLElement>('[data-view]'))
      view.hidden = view.dataset['view'] !== shown;
    for (const name of ['picture', 'write'])
      findElement(document, `.views a[href="#${name}"]`, HTMLAnchorElement).ariaCurrent =
        name === shown ? 'page' : null;
    scrollTo(0, 0);
    onShow(shown);
  };
  addEventListener('hashchange', show);
  show();
  return { show: (view) => void (location.hash = `#${view}`) };
}
