// A part of `npm run check`: finds comments and names in a private language. Prints `file:line: problem` and exits with
// 1 if there are any. `node tools/check-words.mjs [FOLDER…]` checks these folders only.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

const folders = process.argv.length > 2 ? process.argv.slice(2) : ['apps', 'libs', 'test', 'bench', 'tools'];
const maxColumns = 120;

const comment = String.raw`^[ \t]*(?://|\*|--|/\*\*).*`;
const subjects = 'is|has|goes|comes|takes|reads|waits|writes|asks|wants|needs|had|was|does|knows|gets|leaves';
const privateWords =
  '[Tt]old|[Uu]nsaid|[Hh]asSaid|(?<![MmTt])[Aa]sked|[Ss]trange|[Bb]ur(?:y|ied)|[Ww]ishes|[Pp]atience|[Hh]eard';

/** @type {readonly { readonly pattern: RegExp, readonly problem: string, readonly isOfCode?: boolean }[]} */
const rules = [
  {
    pattern: /\/\*\*\s*\n?\s*\*?\s*(?:What|Of|Who|Whoever|Whether|Where|As)\b/g,
    problem: 'begin a doc comment with a verb or a noun phrase',
  },
  {
    pattern: new RegExp(String.raw`${comment}\b(?:[Nn]obody|[Ss]omebody|[Ww]hoever|[Ww]ho (?:${subjects}))\b.*$`, 'gm'),
    problem: 'name what acts: the client, the worker, the request',
  },
  {
    pattern: new RegExp(String.raw`^(?=.{${maxColumns + 1},}$)[ \t]*(?://|\*|--|/\*\*)(?!.*https?://).*$`, 'gm'),
    problem: `a comment line has at most ${maxColumns} columns`,
  },
  {
    pattern: new RegExp(String.raw`\b#?[a-z]*(?:${privateWords})[A-Za-z]*\b`, 'g'),
    problem: 'use a term of the field for this name',
    isOfCode: true,
  },
];

function blank(match) {
  return match.replaceAll(/[^\n]/g, ' ');
}

/** Blanks comments and string literals, and keeps the number of lines. */
function codeOf(text) {
  return text
    .replaceAll(/\/\*[\s\S]*?\*\//g, blank)
    .replaceAll(/^\s*(?:\/\/|--).*$/gm, blank)
    .replaceAll(/'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`/g, blank);
}

function problemsOf(file) {
  const text = readFileSync(file, 'utf8');
  if (text.startsWith('// Generated')) return [];
  const code = codeOf(text);
  return rules.flatMap(({ pattern, problem, isOfCode }) =>
    [...(isOfCode ? code : text).matchAll(pattern)].map(({ index, 0: found }) => {
      const line = text.slice(0, index).split('\n').length;
      return `${file}:${line}: ${problem}: ${found.trim().replaceAll(/\s+/g, ' ').slice(0, 80)}`;
    }),
  );
}

const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', ...folders], {
  encoding: 'utf8',
})
  .split('\n')
  .filter((file) => /\.(?:ts|mjs|lua)$/.test(file) && !/vectors/.test(file));
const problems = files.flatMap(problemsOf);
for (const problem of problems) console.log(problem);
console.log(`${problems.length} problems with words in ${files.length} files`);
process.exitCode = problems.length === 0 ? 0 : 1;
