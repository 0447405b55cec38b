// A log as lines, growing at its end.

import { looksLikeError, parseLine, plain, type Piece, type Style } from '../../lib/ansi';

export interface LogLine {
  raw: string;
  /** The style that the line before left behind. */
  begin: Style;
}

export class LogModel {
  lines: LogLine[] = [];
  /** Bytes that are in. */
  offset = 0;
  /** Where the first line lies in the file; more than 0: what is before was left out. */
  begin = 0;
  private open = '';
  private style: Style = {};
  private decoder = new TextDecoder();

  /** Whether the last line may still grow. */
  get openLine(): string {
    return this.open;
  }

  append(text: string): void {
    const parts = (this.open + text).split('\n');
    this.open = parts.pop() ?? '';
    for (const raw of parts) this.push(raw);
  }

  /** Characters may be cut in two where one piece ends and the next begins. */
  appendBytes(bytes: Uint8Array): void {
    this.offset += bytes.length;
    this.append(this.decoder.decode(bytes, { stream: true }));
  }

  private push(raw: string): void {
    this.lines.push({ raw, begin: this.style });
    // Most lines have no escape and leave the style as it is.
    if (raw.includes('\u001b')) this.style = parseLine(raw, this.style).end;
  }

  get count(): number {
    return this.lines.length + (this.open ? 1 : 0);
  }

  at(index: number): LogLine {
    return this.lines[index] ?? { raw: this.open, begin: this.style };
  }

  pieces(index: number): Piece[] {
    const line = this.at(index);
    return parseLine(line.raw, line.begin).pieces;
  }

  find(text: string): number[] {
    const wanted = text.toLowerCase();
    const found: number[] = [];
    if (!wanted) return found;
    for (let i = 0; i < this.count; i += 1) {
      if (plain(this.at(i).raw).toLowerCase().includes(wanted)) found.push(i);
    }
    return found;
  }

  firstError(): number | null {
    for (let i = 0; i < this.count; i += 1) {
      if (looksLikeError(plain(this.at(i).raw))) return i;
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
