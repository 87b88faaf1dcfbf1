import { GrammarProblem, shortJson } from './grammar-problem.ts';

/** Resolves references within one schema: JSON pointers, anchors, and identifiers. */
export class SchemaReferences {
  readonly #root: unknown;
  #named: ReadonlyMap<string, unknown> | undefined;

  constructor(root: unknown) {
    this.#root = root;
  }

  /** @throws GrammarProblem if the reference is dangling or leads to another document. */
  find(ref: string, path: string): unknown {
    this.#named ??= namedSchemas(this.#root);
    const at = ref.indexOf('#');
    const [document, fragment] = at < 0 ? [ref, ''] : [ref.slice(0, at), ref.slice(at + 1)];
    const base = document === '' ? this.#root : this.#named.get(document.replace(/^.*\//, ''));
    if (base === undefined)
      throw new GrammarProblem(`is ${shortJson(ref)}, expected a reference into this schema: "#/…"`, path);
    const found = fragment === '' || fragment[0] === '/' ? follow(base, fragment) : this.#named.get(`#${fragment}`);
    if (found === undefined) throw new GrammarProblem(`leads nowhere: there is no ${shortJson(ref)}`, path);
    return found;
  }
}

function follow(base: unknown, pointer: string): unknown {
  let found = base;
  for (const step of pointer.split('/').slice(1)) {
    const name = decode(step).replaceAll('~1', '/').replaceAll('~0', '~');
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, name)) return undefined;
    found = (found as Readonly<Record<string, unknown>>)[name];
  }
  return found;
}

function decode(step: string): string {
  try {
    return decodeURIComponent(step);
  } catch {
    return step;
  }
}

/** Returns schemas by the last part of their `$id` or `id`, and by `#` and their `$anchor`. */
function namedSchemas(root: unknown): Map<string, unknown> {
  const named = new Map<string, unknown>();
  const open = [root];
  for (let node = open.pop(); open.length > 0 || node !== undefined; node = open.pop()) {
    if (typeof node !== 'object' || node === null) continue;
    const { $id, id, $anchor } = node as Readonly<Record<string, unknown>>;
    for (const name of [$id, id]) {
      if (typeof name !== 'string') continue;
      const [document = '', fragment] = name.split('#', 2);
      const key = fragment ? `#${fragment}` : document.replace(/^.*\//, '');
      if (key !== '' && !named.has(key)) named.set(key, node);
    }
    if (typeof $anchor === 'string') named.set(`#${$anchor}`, node);
    for (const value of Object.values(node)) if (typeof value === 'object' && value !== null) open.push(value);
  }
  return named;
}
