/** Builder of a Lark grammar. */
export class LarkRules {
  readonly #rules = new Map<string, string>();
  /** True if a rule is recursive: texts are then matched character by character. */
  isRecursive = false;

  /** Adds a rule for an expression. @returns its name. */
  add(expression: string): string {
    const name = this.reserve();
    this.define(name, expression);
    return name;
  }

  /** Reserves the name of a rule that is defined later and may be recursive. A `terminal` is one regular expression. */
  reserve(terminal = false): string {
    const name = `${terminal ? 'T' : 'r'}${this.#rules.size}`;
    this.#rules.set(name, ': ""');
    return name;
  }

  /** Defines a rule. @param options options of the rule, in brackets: `[lazy]`. */
  define(name: string, expression: string, options = ''): void {
    this.#rules.set(name, `${options}: ${expression}`);
  }

  /** Returns the grammar text; `start` is its root expression. */
  textFrom(start: string): string {
    return [`start: ${start}`, ...[...this.#rules].map(([name, body]) => name + body)].join('\n');
  }
}
