// A log as lines, growing at its end. Of a long one the end is held, and the front goes.

import { looksLikeError, parseLine, plain, type Piece, type Style } from '../../lib/ansi';

/** More than this of a log is not held in the browser; the file can be downloaded. */
export const LOG_HELD = 8 * 1024 * 1024;
/** Nor more lines than this: browsers cannot scroll what is higher than some ten million pixels. */
export const LINES_HELD = 500_000;
/** The front goes when there is so much more than is held, not line by line. */
const SLACK = 1 + 1 / 8;
/** A part may have more lines than are held: it is taken in bit by bit. */
const BIT = 1024 * 1024;
/** A line longer than this is cut on the screen, not in the file. */
export const LONGEST = 20_000;

export interface LogLine {
  raw: string;
  /** The style that the line before left behind. */
  begin: Style;
}

/** How long a text is in the file. */
function bytesOf(text: string): number {
  let size = text.length;
  for (let i = 0; i < text.length; i += 1) {
    const code = text.charCodeAt(i);
    // Half a pair of surrogates is half of four bytes.
    if (code >= 0x80) size += code < 0x800 || (code >= 0xd800 && code < 0xe000) ? 1 : 2;
  }
  return size;
}

export class LogModel {
  lines: LogLine[] = [];
  /** Bytes that are in. */
  offset = 0;
  /** Where the first line lies in the file; more than 0: what is before was left out. */
  begin = 0;
  /** Lines that were here and are no longer: what is shown keeps its number. */
  dropped = 0;
  /** Bytes that are held. */
  private size = 0;
  private open = '';
  private style: Style = {};
  private decoder = new TextDecoder();

  constructor(
    private readonly held = LOG_HELD,
    private readonly linesHeld = LINES_HELD,
  ) {}

  append(text: string, bytes = bytesOf(text)): void {
    const parts = (this.open + text).split('\n');
    this.open = parts.pop() ?? '';
    for (const raw of parts) this.push(raw);
    this.size += bytes;
    this.trim();
  }

  /** Characters may be cut in two where one piece ends and the next begins. */
  appendBytes(bytes: Uint8Array): void {
    this.offset += bytes.length;
    for (let at = 0; at < bytes.length; at += BIT) {
      const bit = bytes.subarray(at, at + BIT);
      this.append(this.decoder.decode(bit, { stream: true }), bit.length);
    }
  }

  private push(raw: string): void {
    this.lines.push({ raw, begin: this.style });
    // Most lines have no escape and leave the style as it is.
    if (raw.includes('\u001b')) this.style = parseLine(raw, this.style).end;
  }

  private trim(): void {
    const { lines, held, linesHeld } = this;
    if (this.size <= held * SLACK && lines.length <= linesHeld * SLACK) return;
    const before = this.size;
    let gone = 0;
    for (const { raw } of lines) {
      if (this.size <= held && lines.length - gone <= linesHeld) break;
      this.size -= bytesOf(raw) + 1;
      gone += 1;
    }
    lines.splice(0, gone);
    this.dropped += gone;
    // A line that does not end for megabytes: what is drawn over and over, mostly.
    if (this.size > held) {
      this.open = this.open.slice(-held);
      this.size = Math.min(held, bytesOf(this.open));
    }
    this.begin += before - this.size;
  }

  get count(): number {
    return this.lines.length + (this.open ? 1 : 0);
  }

  at(index: number): LogLine {
    return this.lines[index] ?? { raw: this.open, begin: this.style };
  }

  /** What is shown of a line, and how many characters are not. */
  shown(index: number): { pieces: Piece[]; more: number } {
    const line = this.at(index);
    const pieces: Piece[] = [];
    let left = LONGEST;
    let more = 0;
    for (const { text, style } of parseLine(line.raw, line.begin).pieces) {
      if (left) pieces.push({ text: text.slice(0, left), style });
      more += Math.max(0, text.length - left);
      left = Math.max(0, left - text.length);
    }
    return { pieces, more };
  }

  private text(index: number): string {
    return plain(this.at(index).raw).slice(0, LONGEST);
  }

  /** The numbers of the lines that have it in what is shown of them, from 0 on, with those that are gone. */
  find(text: string): number[] {
    const wanted = text.toLowerCase();
    const found: number[] = [];
    if (!wanted) return found;
    for (let i = 0; i < this.count; i += 1) {
      if (this.text(i).toLowerCase().includes(wanted)) found.push(this.dropped + i);
    }
    return found;
  }

  firstError(): number | null {
    for (let i = 0; i < this.count; i += 1) {
      if (looksLikeError(this.text(i))) return this.dropped + i;
    }
    return null;
  }
}

/** A piece cut where what is searched for begins and ends. */
export function highlight(piece: Piece, wanted: string): (Piece & { mark: boolean })[] {
  if (!wanted) return [{ ...piece, mark: false }];
  const out: (Piece & { mark: boolean })[] = [];
  const lower = piece.text.toLowerCase();
  const needle = wanted.toLowerCase();
  let at = 0;
  for (let hit = lower.indexOf(needle); hit >= 0; hit = lower.indexOf(needle, at)) {
    if (hit > at) out.push({ ...piece, text: piece.text.slice(at, hit), mark: false });
    out.push({ ...piece, text: piece.text.slice(hit, hit + needle.length), mark: true });
    at = hit + needle.length;
  }
  if (at < piece.text.length) out.push({ ...piece, text: piece.text.slice(at), mark: false });
  return out;
}
