// Where a text that is still being written ends: below which keys, and whether a key or a value comes next there.

export interface Place {
  /** The keys from the outermost on. */
  path: string[];
  /** What is written of the next word. */
  word: string;
  /** That it is within quotes. */
  quoted: boolean;
  /** The key whose value it is; null: it is a key itself. */
  of: string | null;
}

const LINE = /^( *)((?:- +)*)(?:(["']?)([\w.-]+)\3:(?: +(.*))?)?$/;

/** Of a line that begins something: how far in it stands, and its item, if it is the first of one. */
function lineOf(text: string) {
  const [, blanks = '', dashes = '', , key = null, value = ''] = LINE.exec(text) ?? [];
  return { outer: blanks.length, inner: blanks.length + dashes.length, key, value };
}

/** Null: in a text or a comment. */
function yamlPath(lines: readonly string[], last: string): string[] | null {
  const path: string[] = [];
  const { outer, inner } = lineOf(/^ *(?:- +)*/.exec(last)?.[0] ?? '');
  let indent = outer;
  let item = inner > outer; // a list may stand as far out as its key
  for (const line of lines.toReversed()) {
    if (indent === 0 && !item) break;
    const { outer, inner, key, value } = lineOf(line);
    if (key === null) continue;
    const first = inner > outer;
    if (inner < indent || (item && inner === indent)) {
      if (/^[|>]/.test(value)) return null;
      path.unshift(key);
    } else if (inner !== indent || !first) {
      continue;
    }
    indent = outer;
    item = first;
  }
  return path;
}

export function yamlPlace(before: string): Place | null {
  const lines = before.split('\n');
  const last = lines.pop() ?? '';
  const path = yamlPath(lines, last);
  if (!path || /(?:^|\s)#/.test(last)) return null;
  const rest = last.replace(/^ *(?:- +)*/, '');
  const [key] = /^[\w.]*$/.exec(rest) ?? [];
  if (key !== undefined) return { path, word: key, quoted: false, of: null };
  const [, of, value] = /^([\w.]+): +(\w*)$/.exec(rest) ?? [];
  if (of !== undefined) return { path, word: value ?? '', quoted: false, of };
  // {a: 1, b: 2} in one line
  const [, map, inner] = /^(?:([\w.]+): +)?\{(?:[^{}[\]]*,)? *([\w.]*)$/.exec(rest) ?? [];
  if (inner === undefined) return null;
  return { path: map ? [...path, map] : path, word: inner, quoted: false, of: null };
}

const TOKENS =
  /\/\/[^\n]*|\/\*[^]*?(?:\*\/|$)|"(?:\\.|[^"\\\n])*(?:"|$)|[{}[\],:]|[^\s{}[\],:"/]+|\//g;

/** Of JSON that may have comments. */
export function jsonPlace(before: string): Place | null {
  const open: { map: boolean; key: string | null }[] = [];
  let key: string | null = null; // the one whose value comes next
  let name = '';
  let last = '';
  for (const [token] of before.matchAll(TOKENS)) {
    last = token;
    if (token === '{' || token === '[') {
      open.push({ map: token === '{', key });
      key = null;
    } else if (token === '}' || token === ']') {
      open.pop();
      key = null;
    } else if (token === ',') {
      key = null;
    } else if (token === ':') {
      key = name;
    } else if (!token.startsWith('/')) {
      name = token.replace(/^"|"$/g, '');
    }
  }
  const comment = last.startsWith('/');
  const closed = last.length > 1 && (comment ? last.endsWith('*/') : last.endsWith('"'));
  const within = before.endsWith(last) && !closed && !/^[{}[\],:]?$/.test(last);
  if ((comment && within) || !open.at(-1)?.map) return null;
  const quoted = within && last.startsWith('"');
  return {
    path: open.flatMap((part) => part.key ?? []),
    word: within ? name : '',
    quoted,
    of: key,
  };
}
