import { describe, expect, it, vi } from 'vitest';
import { ranges } from '../src/api/client';
import { applyCodes, ink, looksLikeError, parseLine, plain } from '../src/lib/ansi';
import { bytes, clock, duration, moment, shortly, text, timeText } from '../src/lib/format';
import { parseTime } from '../src/lib/units';

describe('numbers as people read them', () => {
  it('writes sizes in the greatest fitting unit', () => {
    expect(bytes(0)).toBe('0 B');
    expect(bytes(24 * 1024 ** 3)).toBe('24 GiB');
    expect(bytes(1.5 * 1024 ** 3)).toBe('1.5 GiB');
    expect(bytes(null)).toBe('–');
  });
  it('writes times with their two greatest units', () => {
    expect(duration(900)).toBe('900ms');
    expect(duration(9_900)).toBe('9.9s');
    expect(duration(61_000)).toBe('1m 01s');
    expect(duration(3_725_000)).toBe('1h 02m');
    expect(duration(90_000_000)).toBe('1d 1h');
    expect(duration(null)).toBe('–');
  });
  it('writes a time so that it is read again as the same', () => {
    for (const ms of [1, 1500, 60_000, 5_400_000, 86_400_000]) {
      expect(parseTime(timeText(ms))).toBe(BigInt(ms));
    }
  });
  it('says the day of what is not today, and the year of what is not this one', () => {
    vi.useFakeTimers({ now: new Date(2026, 10, 18, 20, 28, 53) });
    const at = (year: number, month: number, day: number) =>
      new Date(year, month, day, 20, 28, 53).getTime();
    expect(clock(at(2026, 10, 18), 'en')).toBe('20:28:53');
    expect(clock(at(2026, 10, 17), 'en')).toBe('17 Nov, 20:28:53');
    expect(clock(at(2027, 10, 18), 'en')).toBe('18 Nov 2027, 20:28:53');
    expect(clock(at(2027, 10, 18), 'zh')).toBe('2027年11月18日 20:28:53');
    expect(moment(at(2025, 11, 31), 'en')).toBe('31 Dec 2025, 20:28');
    expect(shortly(at(2026, 10, 18), 'en')).toBe('20:28');
    // What ended before midnight ended minutes ago.
    expect(shortly(at(2026, 10, 17) + 3_600_000, 'en')).toBe('21:28');
    expect(shortly(at(2026, 10, 17) - 1, 'en')).toBe('17 Nov');
    expect(shortly(at(2026, 0, 1), 'en')).toBe('1 Jan');
    expect(shortly(at(2025, 10, 18), 'en')).toBe('18 Nov 2025');
    vi.useRealTimers();
  });
  it('shows bytes that are no text', () => {
    expect(text('plain')).toBe('plain');
    expect(text({ base64: btoa('a\xffb') })).toBe('a\ufffdb');
    expect(text(null)).toBe('');
  });
});

describe('ids in requests', () => {
  it('are written as ranges', () => {
    expect(ranges([9, 3, 5, 6, 7, 8, 5])).toBe('3,5-9');
    expect(ranges([])).toBe('');
    expect(ranges([1, 2])).toBe('1-2');
  });
});

describe('terminal output', () => {
  it('keeps colours and leaves out what moves the cursor', () => {
    const { pieces, end } = parseLine('a\u001b[31mred\u001b[0m\u001b[2Kb', {});
    expect(pieces.map((piece) => piece.text)).toEqual(['a', 'red', 'b']);
    expect(pieces[1]?.style.fg).toBe('var(--ansi-1)');
    expect(end).toEqual({});
  });
  it('carries a style over to the next line', () => {
    const { end } = parseLine('\u001b[1;32mgreen', {});
    expect(end).toEqual({ bold: true, fg: 'var(--ansi-2)' });
    expect(parseLine('still', end).pieces[0]?.style.bold).toBe(true);
  });
  it('knows colours by number and by value', () => {
    expect(applyCodes({}, '38;5;196').fg).toBe('rgb(255 0 0)');
    expect(applyCodes({}, '48;2;1;2;3').bg).toBe('rgb(1 2 3)');
    expect(applyCodes({ fg: 'x', bold: true }, '')).toEqual({});
    expect(applyCodes({ bold: true, dim: true }, '22')).toEqual({});
  });
  it('can be read on whatever lies under it', () => {
    expect(ink({ fg: 'rgb(1 2 3)' })).toBe('rgb(1 2 3)');
    expect(ink(applyCodes({}, '41'))).toBe('var(--log-bg)');
    expect(ink(applyCodes({}, '37;41'))).toBe('var(--log-bg)');
    expect(ink(applyCodes({}, '48;5;226'))).toBe('rgb(0 0 0)');
    expect(ink(applyCodes({}, '48;2;0;0;128'))).toBe('rgb(255 255 255)');
    expect(ink(applyCodes({}, '38;2;255;255;0;48;2;0;0;128'))).toBe('rgb(255 255 0)');
    expect(ink(applyCodes({}, '38;2;9;9;9;48;2;0;0;128'))).toBe('rgb(255 255 255)');
  });
  it('shows of a progress bar what was drawn last', () => {
    expect(plain('10%\r50%\r100%')).toBe('100%');
    expect(plain('done\r')).toBe('done');
  });
  it('is not confused by broken sequences', () => {
    expect(plain('a\u001b[')).toBe('a[');
    expect(plain('\u001b]0;title\u0007text')).toBe('text');
  });
  it('finds errors, and passes over numbers that are called so', () => {
    for (const line of [
      'RuntimeError: CUDA out of memory',
      'Traceback (most recent call last):',
      'Segmentation fault (core dumped)',
      'error: no such file',
    ]) {
      expect(looksLikeError(line), line).toBe(true);
    }
    for (const line of ['epoch 3 error: 0.013', 'finished with 0 errors', 'step 3/10 loss=0.5']) {
      expect(looksLikeError(line), line).toBe(false);
    }
  });
});
