/** The element that the page's HTML promises; a page without it is broken, and says so at once. */
export function findElement<Type extends Element>(root: ParentNode, selector: string, type: new () => Type): Type {
  const found = root.querySelector(selector);
  if (!(found instanceof type)) throw new Error(`the page has no ${type.name} at ${selector}`);
  return found;
}

/** The element of a template's copy with this `data-part`. */
export function partOf<Type extends Element>(root: ParentNode, part: string, type: new () => Type): Type {
  return findElement(root, `[data-part=${part}]`, type);
}

/** A copy of the one element in a `<template>` of the page. */
export function cloneTemplate<Type extends Element>(id: string, type: new () => Type): Type {
  const template = findElement(document, `template#${id}`, HTMLTemplateElement);
  return findElement(template.content.cloneNode(true) as DocumentFragment, '*', type);
}
