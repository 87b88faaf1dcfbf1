import { findElement } from './find-element.ts';

export type ViewName = 'image' | 'write';

/**
 * Shows one of the page's views according to the URL's hash (`#write`), so that reload and the browser's history work.
 */
export function startViews(onShow: (view: ViewName) => void): { show: (view: ViewName) => void } {
  const show = (): void => {
    const shown: ViewName = location.hash === '#write' ? 'write' : 'image';
    for (const view of document.querySelectorAll<HTMLElement>('[data-view]'))
      view.hidden = view.dataset['view'] !== shown;
    for (const name of ['image', 'write'])
      findElement(document, `.views a[href="#${name}"]`, HTMLAnchorElement).ariaCurrent =
        name === shown ? 'page' : null;
    scrollTo(0, 0);
    onShow(shown);
  };
  addEventListener('hashchange', show);
  show();
  return {
    show(view) {
      if (view === (location.hash === '#write' ? 'write' : 'image')) return;
      location.hash = `#${view}`;
      // At once, so that its elements can get the focus: the event follows later.
      show();
    },
  };
}
