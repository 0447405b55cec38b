import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Live } from '../src/api/live';
import type { HistoryEvent } from '../src/api/types';
import { FakeSource } from './fakesource';

/** The daemon, as far as the connection looks at it. */
let daemon: { up: boolean; hangs: boolean; status: number; pid: number; asked: string[] };

function answer(url: string): unknown {
  if (url.includes('/api/status')) return { version: '1', pid: daemon.pid, counts: {} };
  if (url.includes('/api/gpus')) return { gpus: [] };
  return {
    events: url.includes('order=desc') ? [{ seq: 41 }] : [{ seq: 42, kind: 'started' }],
    last: 42,
  };
}

const heard = { events: [] as HistoryEvent[], back: 0 };
let live: Live;

beforeEach(() => {
  vi.useFakeTimers();
  FakeSource.all = [];
  heard.events = [];
  heard.back = 0;
  daemon = { up: true, hangs: false, status: 200, pid: 7, asked: [] };
  vi.stubGlobal('EventSource', FakeSource);
  vi.stubGlobal('fetch', (request: Request) => {
    daemon.asked.push(request.url);
    if (!daemon.up) return Promise.reject(new TypeError('refused'));
    if (daemon.hangs) {
      return new Promise((_, reject) => {
        request.signal.addEventListener('abort', () =>
          reject(new DOMException('given up', 'AbortError')),
        );
      });
    }
    const body =
      daemon.status === 200 ? answer(request.url) : { error: { code: 'x', message: 'no' } };
    return Promise.resolve(
      new Response(JSON.stringify(body), {
        status: daemon.status,
        headers: { 'Content-Type': 'application/json' },
      }),
    );
  });
  live = new Live({
    events: (events) => heard.events.push(...events),
    gpus: () => undefined,
    status: () => undefined,
    back: () => (heard.back += 1),
  });
});

afterEach(() => {
  live.stop();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const settle = (ms = 0) => vi.advanceTimersByTimeAsync(ms);

describe('the live connection', () => {
  it('begins where history ends and tells what comes', async () => {
    live.start();
    await settle();
    const [source] = FakeSource.all;
    expect(source?.url).toContain('after=41');
    source?.onopen?.();
    source?.tell('event', { seq: 43, kind: 'started', job: 1 });
    await settle(200);
    expect(live.snapshot().link).toBe('live');
    expect(heard.events.map((event) => event.seq)).toEqual([43]);
  });

  it('tells of a hundred thousand events in a few words', async () => {
    const told: number[] = [];
    const busy = new Live({
      events: (events) => told.push(events.length),
      gpus: () => undefined,
      status: () => undefined,
      back: () => undefined,
    });
    let notified = 0;
    busy.subscribe(() => (notified += 1));
    busy.start();
    await settle();
    FakeSource.all[0]?.onopen?.();
    const opened = notified;
    for (let seq = 100; seq < 100_100; seq += 1) {
      FakeSource.all[0]?.tell('event', { seq, kind: 'paused', job: seq });
      if (seq % 10_000 === 0) await settle(100);
    }
    await settle(1000);
    busy.stop();
    expect(notified).toBe(opened);
    // Over the two seconds that it took, and not one got lost.
    expect(told.length).toBeLessThan(10);
    expect(told.reduce((sum, count) => sum + count, 0)).toBe(100_000);
  });

  it('asks again when nothing has been heard for long, and not before', async () => {
    live.start();
    await settle();
    FakeSource.all[0]?.onopen?.();
    await settle(30_000);
    FakeSource.all[0]?.tell('gpus', []);
    await settle(30_000);
    expect(FakeSource.all).toHaveLength(1);
    await settle(15_000);
    expect(FakeSource.all).toHaveLength(2);
  });

  it('says that the daemon is gone, and finds its way back to where it was', async () => {
    live.start();
    await settle();
    FakeSource.all[0]?.onopen?.();
    FakeSource.all[0]?.tell('event', { seq: 50, kind: 'started' });
    daemon.up = false;
    FakeSource.all[0]?.onerror?.();
    await settle(600);
    expect(live.snapshot().link).toBe('gone');
    expect(live.snapshot().retryAt).not.toBeNull();
    daemon.up = true;
    await settle(10_000);
    expect(FakeSource.all.at(-1)?.url).toContain('after=50');
    FakeSource.all.at(-1)?.onopen?.();
    expect(live.snapshot().link).toBe('live');
    expect(heard.back).toBe(1);
  });

  it('asks for everything anew when another daemon answers', async () => {
    live.start();
    await settle();
    FakeSource.all[0]?.onopen?.();
    daemon.pid = 8;
    FakeSource.all[0]?.onerror?.();
    await settle(600);
    FakeSource.all.at(-1)?.onopen?.();
    expect(heard.back).toBe(1);
  });

  it('polls where there are no streams', async () => {
    live.start();
    await settle();
    FakeSource.all[0]?.onerror?.();
    await settle(1500);
    expect(live.snapshot().link).toBe('polling');
    expect(heard.events.map((event) => event.seq)).toContain(42);
  });

  it('stops asking when it is refused', async () => {
    daemon.status = 401;
    live.start();
    await settle();
    expect(live.snapshot().link).toBe('denied');
    const asked = daemon.asked.length;
    await settle(60_000);
    expect(daemon.asked.length).toBe(asked);
  });

  it('gives its connection back while nobody looks', async () => {
    live.start();
    await settle();
    FakeSource.all[0]?.onopen?.();
    const look = vi.spyOn(document, 'visibilityState', 'get').mockReturnValue('hidden');
    document.dispatchEvent(new Event('visibilitychange'));
    await settle(25_000);
    expect(FakeSource.all[0]?.closed).toBe(true);
    look.mockReturnValue('visible');
    document.dispatchEvent(new Event('visibilitychange'));
    await settle();
    FakeSource.all.at(-1)?.onopen?.();
    expect(FakeSource.all.length).toBe(2);
    expect(heard.back).toBe(1);
    look.mockRestore();
  });

  it('takes no connection in a page that was opened in the background', async () => {
    const look = vi.spyOn(document, 'visibilityState', 'get').mockReturnValue('hidden');
    live.start();
    await settle(60_000);
    expect(daemon.asked).toEqual([]);
    expect(FakeSource.all).toEqual([]);
    look.mockReturnValue('visible');
    document.dispatchEvent(new Event('visibilitychange'));
    await settle();
    FakeSource.all[0]?.onopen?.();
    expect(live.snapshot().link).toBe('live');
    look.mockRestore();
  });

  it('says that a daemon which hangs is gone', async () => {
    live.start();
    await settle();
    FakeSource.all[0]?.onopen?.();
    daemon.hangs = true;
    await settle(50_000);
    expect(live.snapshot().link).toBe('gone');
    expect(live.snapshot().retryAt).not.toBeNull();
    daemon.hangs = false;
    await settle(20_000);
    FakeSource.all.at(-1)?.onopen?.();
    expect(live.snapshot().link).toBe('live');
    expect(heard.back).toBe(1);
  });

  it('has patience with a stream that never opens, but not for ever', async () => {
    live.start();
    await settle(60_000);
    expect(FakeSource.all.length).toBe(2);
    expect(FakeSource.all[0]?.closed).toBe(true);
  });

  it('has one stream however often one asks for another', async () => {
    live.start();
    await settle();
    FakeSource.all[0]?.onopen?.();
    live.retry();
    live.retry();
    live.retry();
    await settle(1_000);
    expect(FakeSource.all.filter((source) => !source.closed)).toHaveLength(1);
  });

  it('looks again when the stream falls silent', async () => {
    live.start();
    await settle();
    FakeSource.all[0]?.onopen?.();
    await settle(41_000);
    expect(FakeSource.all.length).toBe(2);
    expect(FakeSource.all[0]?.closed).toBe(true);
  });
});
