import { choice } from './grammar-rules.ts';
import { json } from './json-grammar.ts';
import type { Schema } from './schema-keywords.ts';

export function numberGrammar(type: 'number' | 'integer', _schema: Schema, _place: string): string {
  return choice([json[type]]);
}
