// Terminal output as lines of styled pieces. Colours and weights are kept, whatever moves a cursor is not.

export interface Style {
  fg?: string;
  bg?: string;
  bold?: boolean;
  dim?: boolean;
  italic?: boolean;
  underline?: boolean;
}

export interface Piece {
  text: string;
  style: Style;
}

/* eslint-disable no-control-regex -- control characters are what this is about */
const SEQUENCE =
  /\u001b\[([0-9;:]*)([A-Za-z])|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)|\u001b[@-Z\\-_]/g;
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f]/g;

/* eslint-enable no-control-regex */

const LEVELS = [0, 95, 135, 175, 215, 255];

function indexed(n: number): string {
  if (n < 16) return `var(--ansi-${n % 8})`;
  if (n >= 232) {
    const level = 8 + (n - 232) * 10;
    return `rgb(${level} ${level} ${level})`;
  }
  const cube = n - 16;
  const part = (i: number) => LEVELS[i] ?? 0;
  return `rgb(${part(Math.floor(cube / 36))} ${part(Math.floor(cube / 6) % 6)} ${part(cube % 6)})`;
}

function extended(codes: number[], at: number): { colour: string | undefined; used: number } {
  if (codes[at + 1] === 5) return { colour: indexed((codes[at + 2] ?? 0) & 255), used: 2 };
  if (codes[at + 1] === 2) {
    const [r, g, b] = [codes[at + 2] ?? 0, codes[at + 3] ?? 0, codes[at + 4] ?? 0];
    return { colour: `rgb(${r & 255} ${g & 255} ${b & 255})`, used: 4 };
  }
  return { colour: undefined, used: 0 };
}

/** How light a colour is, from 0 to 1, as WCAG weighs it; null: it is one of the theme's. */
function luminance(colour: string): number | null {
  const parts = /^rgb\((\d+) (\d+) (\d+)\)$/.exec(colour);
  if (!parts) return null;
  const [red = 0, green = 0, blue = 0] = parts.slice(1).map((part) => {
    const share = Number(part) / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

const contrast = (a: number, b: number) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
/** What text needs at least. */
const ENOUGH = 4.5;

/** The colour of letters, so that they can be read on what lies under them. */
export function ink({ fg, bg }: Style): string | undefined {
  if (!bg) return fg;
  const under = luminance(bg);
  // What stands out from the ground of the log has letters in the colour of that ground, in the light as in the dark.
  if (under === null) return 'var(--log-bg)';
  const over = fg ? luminance(fg) : null;
  if (over !== null && contrast(over, under) >= ENOUGH) return fg;
  return contrast(0, under) > contrast(1, under) ? 'rgb(0 0 0)' : 'rgb(255 255 255)';
}

export function applyCodes(style: Style, parameters: string): Style {
  const codes = parameters === '' ? [0] : parameters.split(/[;:]/).map(Number);
  let now: Style = { ...style };
  for (let i = 0; i < codes.length; i += 1) {
    const code = codes[i] ?? 0;
    if (code === 0) now = {};
    else if (code === 1) now.bold = true;
    else if (code === 2) now.dim = true;
    else if (code === 3) now.italic = true;
    else if (code === 4) now.underline = true;
    else if (code === 22) {
      delete now.bold;
      delete now.dim;
    } else if (code === 23) delete now.italic;
    else if (code === 24) delete now.underline;
    else if (code === 39) delete now.fg;
    else if (code === 49) delete now.bg;
    else if (code >= 30 && code <= 37) now.fg = indexed(code - 30);
    else if (code >= 90 && code <= 97) now.fg = indexed(code - 90 + 8);
    else if (code >= 40 && code <= 47) now.bg = indexed(code - 40);
    else if (code >= 100 && code <= 107) now.bg = indexed(code - 100 + 8);
    else if (code === 38 || code === 48) {
      const { colour, used } = extended(codes, i);
      if (colour) now[code === 38 ? 'fg' : 'bg'] = colour;
      i += used;
    }
  }
  return now;
}

/** What a terminal would show of a line over which a progress bar was drawn again and again. */
export function lastDrawn(line: string): string {
  const trimmed = line.endsWith('\r') ? line.slice(0, -1) : line;
  const at = trimmed.lastIndexOf('\r');
  return at < 0 ? trimmed : trimmed.slice(at + 1);
}

export function plain(line: string): string {
  return lastDrawn(line).replace(SEQUENCE, '').replace(CONTROL, '');
}

/** The pieces of a line, and the style that the next line begins with. */
export function parseLine(line: string, begin: Style): { pieces: Piece[]; end: Style } {
  const drawn = lastDrawn(line);
  const pieces: Piece[] = [];
  let style = begin;
  let at = 0;
  const push = (text: string) => {
    const clean = text.replace(CONTROL, '');
    if (clean) pieces.push({ text: clean, style });
  };
  for (const match of drawn.matchAll(SEQUENCE)) {
    push(drawn.slice(at, match.index));
    at = match.index + match[0].length;
    if (match[2] === 'm') style = applyCodes(style, match[1] ?? '');
  }
  push(drawn.slice(at));
  return { pieces, end: style };
}

const ERROR =
  /\b(error|exception|traceback|fatal|panic|segmentation fault|out of memory|assertion.*failed|killed|abort(?:ed)?)\b|[A-Z]\w+(?:Error|Exception)\b/i;
/** "0 errors", "error: 0.013", "error_rate=": said of things that go well. */
const HARMLESS = /\b(?:0|no) errors?\b|\berrors?(?:[_ -]?rate)?\s*[=:]\s*[0-9.]/i;

export function looksLikeError(line: string): boolean {
  return ERROR.test(line) && !HARMLESS.test(line);
}
