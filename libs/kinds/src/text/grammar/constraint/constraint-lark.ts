import type { TextConstraint } from '../../form/text-input.ts';
import { prepareSchema } from '../schema/prepare-schema.ts';
import { gbnfToLark } from './gbnf-lark.ts';
import { GrammarProblem } from '../schema/grammar-problem.ts';
import { LarkRules } from './lark-rules.ts';
import { regexSource } from '../schema/regex-source.ts';

type Tag = Extract<TextConstraint, { type: 'tag' }>;

/** llguidance options for JSON on one line, with ", " and ": ". */
const jsonStyle = { whitespace_flexible: false, item_separator: ', ', key_separator: ': ' };

/**
 * Translates a constraint to a Lark grammar for llguidance. `isRecursive`: it is matched character by character.
 *
 * @throws GrammarProblem whose message starts with the path, if the problem is in a schema.
 */
export function constraintToLark(constraint: TextConstraint): { lark: string; isRecursive: boolean } {
  const rules = new LarkRules();
  const lark = rules.textFrom(expressionOf(constraint, rules));
  return { lark, isRecursive: rules.isRecursive };
}

function expressionOf(constraint: TextConstraint, rules: LarkRules): string {
  switch (constraint.type) {
    case 'json_schema': {
      const schema = { ...prepareSchema(constraint.json_schema), 'x-guidance': jsonStyle };
      return rules.add(`%json ${JSON.stringify(schema)}`);
    }
    case 'grammar':
      return gbnfToLark(constraint.grammar, rules);
    case 'regex':
      return rules.add(`/${regexSource(constraint.pattern)}/`);
    case 'or':
      return rules.add(constraint.elements.map((element) => expressionOf(element, rules)).join(' | '));
    case 'tag':
      return tagOf(constraint, rules);
    case 'tags_with_separator': {
      const { tags, separator, stop_after_first: isOne } = constraint;
      const tag = rules.add(tags.map((each) => tagOf(each, rules)).join(' | '));
      return rules.add(isOne ? tag : `${tag} (${literal(separator)} ${tag})*`);
    }
    case 'triggered_tags':
      return triggered(constraint, rules);
    default:
      throw new GrammarProblem('it is no constraint');
  }
}

function tagOf({ begin, content, end }: Tag, rules: LarkRules): string {
  // Make each character a lexeme if the tag starts like JSON: as one lexeme it would hide a JSON alternative.
  const start = /^[{[]/u.test(begin) ? Array.from(begin, literal).join(' ') : literal(begin);
  return rules.add([start, expressionOf(content, rules), literal(end)].join(' '));
}

/** Returns the rule of free text in which the trigger starts one of the tags. */
function triggered(constraint: Extract<TextConstraint, { type: 'triggered_tags' }>, rules: LarkRules): string {
  const { trigger, tags, stop_after_first: isOne } = constraint;
  const head = rules.reserve();
  rules.define(head, `/(?s:.*)${escaped(trigger)}/`, '[lazy]');
  const rests = tags.map((tag) => tagOf({ ...tag, begin: tag.begin.slice(trigger.length) }, rules));
  const call = rules.add(`${head} (${rests.join(' | ')})`);
  const text = rules.add('/(?s:.*)/');
  return rules.add(isOne ? `${call} | ${text}` : `${call}* ${text}`);
}

function literal(text: string): string {
  return text === '' ? '""' : `/${escaped(text)}/`;
}

function escaped(text: string): string {
  return Array.from(text, (letter) => `\\x{${letter.codePointAt(0)!.toString(16)}}`).join('');
}
