/** Returns an element that the page's HTML must contain; throws if it is missing. */
export function findElement<Type extends Element>(root: ParentNode, selector: string, type: new () => Type): Type {
  const found = root.querySelector(selector);
  if (!(found instanceof type)) throw new Error(`the page has no ${type.name} at ${selector}`);
  return found;
}

/** Returns the element with this `data-part`. */
export function partOf<Type extends Element>(root: ParentNode, part: string, type: new () => Type): Type {
  return findElement(root, `[data-part=${part}]`, type);
}

/** Returns a copy of the one element in a `<template>` of the page. */
export function cloneTemplate<Type extends Element>(id: string, type: new () => Type): Type {
  const template = findElement(document, `template#${id}`, HTMLTemplateElement);
  return findElement(template.content.cloneNode(true) as DocumentFragment, '*', type);
}
