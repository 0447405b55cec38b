import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { LogReader } from '../src/pages/state/logreader';

class FakeSource extends EventTarget {
  static all: FakeSource[] = [];
  static readonly CLOSED = 2;
  readyState = 0;
  onopen: (() => void) | null = null;
  onerror: (() => void) | null = null;
  constructor(readonly url: string) {
    super();
    FakeSource.all.push(this);
  }
  close() {
    this.readyState = FakeSource.CLOSED;
  }
  write(text: string) {
    log += text;
    const data = JSON.stringify({ attempt: 1, offset: log.length, text });
    this.dispatchEvent(new MessageEvent('log', { data }));
  }
}

/** The file, as far as it is written. */
let log: string;
let up: boolean;
let asked: string[];
let reader: LogReader;

beforeEach(() => {
  vi.useFakeTimers();
  FakeSource.all = [];
  log = 'one\ntwo\n';
  up = true;
  asked = [];
  vi.stubGlobal('EventSource', FakeSource);
  vi.stubGlobal('fetch', (_: string, { headers }: { headers: Record<string, string> }) => {
    const range = headers['Range'];
    if (range) asked.push(range);
    if (!up) return Promise.reject(new TypeError('refused'));
    if (!range) return Promise.resolve(new Response(log));
    const from = range.startsWith('bytes=-') ? 0 : Number(/\d+/.exec(range)?.[0]);
    if (from >= log.length) return Promise.resolve(new Response('{}', { status: 416 }));
    return Promise.resolve(
      new Response(log.slice(from), {
        status: 206,
        headers: { 'Content-Range': `bytes ${from}-${log.length - 1}/${log.length}` },
      }),
    );
  });
  reader = new LogReader(7, 1);
});

afterEach(() => {
  reader.stop();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const well = { running: true, looked: true, gone: false };
const settle = (ms = 0) => vi.advanceTimersByTimeAsync(ms);
const shown = () => reader.model.lines.map((line) => line.raw);
const open = () => FakeSource.all.filter((source) => source.readyState !== FakeSource.CLOSED);

describe('a log that is read', () => {
  it('keeps what there is when the job ends, and asks for the rest alone', async () => {
    reader.tell(well);
    await settle();
    const { model } = reader;
    FakeSource.all[0]?.write('three\n');
    log += 'four\n';
    reader.tell({ ...well, running: false });
    await settle();
    expect(reader.model).toBe(model);
    expect(shown()).toEqual(['one', 'two', 'three', 'four']);
    expect(asked).toEqual(['bytes=-8388608', 'bytes=14-']);
    expect(open()).toEqual([]);
  });

  it('gives its connection back while nobody looks, and goes on where it was', async () => {
    reader.tell(well);
    await settle();
    expect(FakeSource.all[0]?.url).toContain('offset=8');
    reader.tell({ ...well, looked: false });
    expect(open()).toEqual([]);
    log += 'meanwhile\n';
    reader.tell(well);
    await settle();
    expect(shown()).toEqual(['one', 'two', 'meanwhile']);
    expect(FakeSource.all.at(-1)?.url).toContain('offset=18');
    expect(open()).toHaveLength(1);
  });

  it('does not follow in a page that was opened in the background', async () => {
    reader.tell({ ...well, looked: false });
    await settle(10_000);
    expect(shown()).toEqual(['one', 'two']);
    expect(FakeSource.all).toEqual([]);
  });

  it('is there when the daemon is back, and the error gone', async () => {
    for (const running of [true, false]) {
      up = false;
      reader = new LogReader(7, 1);
      reader.tell({ ...well, running });
      await settle();
      expect(reader.error).toBe('The daemon does not answer.');
      reader.tell({ running, looked: true, gone: true });
      up = true;
      await settle(10_000);
      reader.tell({ ...well, running });
      await settle();
      expect(reader.error).toBeNull();
      expect(shown()).toEqual(['one', 'two']);
      reader.stop();
    }
  });

  it('is shown to whoever comes back to it without a daemon, and goes on with it', async () => {
    for (const known of [true, false]) {
      log = 'one\ntwo\n';
      reader = new LogReader(7, 1);
      const unwatch = reader.watch(() => undefined);
      reader.tell(well);
      await settle();
      unwatch();
      expect(open()).toEqual([]);
      up = false;
      log += 'three\n';
      // Whether it is known yet that the daemon is gone or not.
      reader.tell({ ...well, gone: known });
      await settle();
      expect(reader.error).toBeNull();
      expect(shown()).toEqual(['one', 'two']);
      up = true;
      reader.tell(well);
      await settle(1_500);
      expect(shown()).toEqual(['one', 'two', 'three']);
      reader.stop();
    }
  });

  it('tries again by itself where only one request was lost', async () => {
    up = false;
    reader.tell({ ...well, running: false });
    await settle();
    up = true;
    await settle(1_500);
    expect(reader.error).toBeNull();
    expect(shown()).toEqual(['one', 'two']);
  });

  it('is asked for again and again where there are no streams', async () => {
    reader.tell(well);
    await settle();
    FakeSource.all[0]?.onerror?.();
    log += 'three\n';
    await settle(1_500);
    expect(shown()).toEqual(['one', 'two', 'three']);
    expect(FakeSource.all).toHaveLength(1);
  });
});
