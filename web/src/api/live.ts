// What happens at the daemon, as it happens: Server-Sent Events, or polling where they cannot be had.
// One connection for the whole page; it finds its way back by itself and goes on where it was.

import { attended } from '../lib/attention';
import { ApiError, api, target } from './client';
import type { Gpu, HistoryEvent, LiveStatus, Status } from './types';

export type Link = 'connecting' | 'live' | 'polling' | 'gone' | 'denied';

export interface LiveState {
  link: Link;
  /** When the daemon was last heard of, by this machine's clock. */
  heard: number | null;
  retryAt: number | null;
}

interface Handlers {
  events: (events: HistoryEvent[]) => void;
  gpus: (gpus: Gpu[]) => void;
  status: (status: Status | LiveStatus) => void;
  /** The daemon is there again: whatever is shown may be old. */
  back: () => void;
}

const FIRST_WAIT = 500;
const LONGEST_WAIT = 8_000;
const POLL = 1_000;
/** A daemon that hangs, or a tunnel that is dead, takes what is sent and never answers. */
const PATIENCE = 8_000;
/** The stream says something every 15 s, a sign of life at least. */
const SILENCE = 40_000;
const STREAM_AGAIN = 60_000;
/** Events may come by the hundred thousand: what came within this time is told at once. */
const GATHER = 150;

export class Live {
  private state: LiveState = { link: 'connecting', heard: null, retryAt: null };
  private watchers = new Set<() => void>();
  private source: EventSource | null = null;
  private timer: ReturnType<typeof setTimeout> | null = null;
  private wait = FIRST_WAIT;
  private seq: number | null = null;
  private pid: number | null = null;
  private stopped = true;
  private wasGone = false;
  private streamFailedAt = 0;
  private lastHeard: number | null = null;
  private gathered: HistoryEvent[] = [];
  private telling: ReturnType<typeof setTimeout> | null = null;
  /** What the daemon is being asked; nothing else is asked meanwhile. */
  private asking: AbortController | null = null;
  private unwatch: (() => void) | null = null;
  private asleep = false;

  constructor(private readonly handlers: Handlers) {}

  snapshot = (): LiveState => this.state;
  subscribe = (watcher: () => void): (() => void) => {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  };

  start(): void {
    this.stopped = false;
    this.unwatch = attended((looked) => {
      if (looked) {
        this.wasGone ||= this.asleep;
        this.asleep = false;
        this.retry();
      } else {
        this.asleep = true;
        this.close();
      }
    });
  }

  stop(): void {
    this.stopped = true;
    this.unwatch?.();
    if (this.telling) clearTimeout(this.telling);
    this.telling = null;
    this.close();
  }

  /** At once, instead of when the time has come. */
  retry = (): void => {
    this.wait = FIRST_WAIT;
    void this.connect();
  };

  private close(): void {
    this.asking?.abort();
    this.asking = null;
    this.source?.close();
    this.source = null;
    if (this.timer) clearTimeout(this.timer);
    this.timer = null;
  }

  private tell(change: Partial<LiveState>): void {
    this.state = { ...this.state, ...change };
    for (const watcher of this.watchers) watcher();
  }

  /** Who watches is told of a change of the link, not of every word that comes over it. */
  private heard(link: Link): void {
    this.wait = FIRST_WAIT;
    this.lastHeard = Date.now();
    if (this.state.link !== link || this.state.retryAt !== null) {
      this.tell({ link, heard: this.lastHeard, retryAt: null });
    }
    if (this.wasGone) {
      this.wasGone = false;
      this.handlers.back();
    }
  }

  /**
   * Asks, for no longer than it has patience. What was on its way before is given up: there is one question at a
   * time, and one stream.
   */
  private async ask<T>(
    question: (signal: AbortSignal) => Promise<T>,
    act: (answer: T) => void,
  ): Promise<void> {
    this.close();
    if (this.stopped || this.asleep) return;
    const asking = new AbortController();
    this.asking = asking;
    const late = setTimeout(() => asking.abort(), PATIENCE);
    try {
      const answer = await question(asking.signal);
      if (this.asking !== asking) return;
      this.asking = null;
      act(answer);
    } catch (error) {
      if (this.asking !== asking) return;
      this.failed(error);
    } finally {
      clearTimeout(late);
    }
  }

  /** A look first: it tells a daemon that is gone from one that has no streams or wants a token. */
  private connect = (): Promise<void> =>
    this.ask(
      async (signal) => {
        const status = await api.status(signal);
        if (this.seq !== null) return { status, seq: this.seq };
        const { events } = await api.events({ order: 'desc', limit: 1 }, signal);
        return { status, seq: events[0]?.seq ?? 0 };
      },
      ({ status, seq }) => {
        if (this.pid !== null && this.pid !== status.pid) this.wasGone = true;
        this.pid = status.pid;
        this.seq ??= seq;
        this.handlers.status(status);
        if (Date.now() - this.streamFailedAt < STREAM_AGAIN) {
          this.heard('polling');
          this.pollLater();
        } else {
          this.stream();
        }
      },
    );

  private failed(error: unknown): void {
    this.close();
    if (error instanceof ApiError && error.denied) {
      this.tell({ link: 'denied', retryAt: null });
      return;
    }
    this.wasGone = true;
    const wait = this.wait;
    this.wait = Math.min(LONGEST_WAIT, this.wait * 2);
    this.tell({ link: 'gone', heard: this.lastHeard, retryAt: Date.now() + wait });
    this.timer = setTimeout(() => void this.connect(), wait);
  }

  private stream(): void {
    this.close();
    const source = new EventSource(
      target('/api/stream', { topics: 'events,gpus,status', after: this.seq }),
    );
    this.source = source;
    let opened = false;
    /** One timer that looks back at when something came last, instead of a new one for every word. */
    const listen = (wait: number) => {
      this.timer = setTimeout(() => {
        const left = (this.lastHeard ?? 0) + SILENCE - Date.now();
        if (left > 0) listen(left);
        else this.retry();
      }, wait);
    };
    const alive = () => this.heard('live');
    listen(SILENCE);
    source.onopen = () => {
      opened = true;
      alive();
    };
    source.addEventListener('event', (message: MessageEvent<string>) => {
      alive();
      this.take([JSON.parse(message.data) as HistoryEvent]);
    });
    source.addEventListener('gpus', (message: MessageEvent<string>) => {
      alive();
      this.handlers.gpus(JSON.parse(message.data) as Gpu[]);
    });
    source.addEventListener('status', (message: MessageEvent<string>) => {
      alive();
      this.handlers.status(JSON.parse(message.data) as LiveStatus);
    });
    source.onerror = () => {
      source.close();
      if (this.source !== source) return;
      this.source = null;
      // A stream that has never been open is refused; one that breaks off may be had again.
      if (!opened) this.streamFailedAt = Date.now();
      if (this.timer) clearTimeout(this.timer);
      this.timer = setTimeout(() => void this.connect(), opened ? this.wait : 0);
    };
  }

  private take(events: HistoryEvent[]): void {
    for (const event of events) {
      this.seq = Math.max(this.seq ?? 0, event.seq);
      this.gathered.push(event);
    }
    if (!this.gathered.length) return;
    this.telling ??= setTimeout(() => {
      this.telling = null;
      const all = this.gathered;
      this.gathered = [];
      this.handlers.events(all);
    }, GATHER);
  }

  private pollLater(): void {
    this.timer = setTimeout(() => void this.poll(), POLL);
  }

  private poll = (): Promise<void> =>
    this.ask(
      (signal) =>
        Promise.all([
          api.events({ after: this.seq ?? 0, limit: 1000 }, signal),
          api.gpus(signal),
          api.status(signal),
        ]),
      ([page, gpus, status]) => {
        this.heard('polling');
        this.handlers.gpus(gpus);
        this.handlers.status(status);
        this.take(page.events);
        if (Date.now() - this.streamFailedAt < STREAM_AGAIN) this.pollLater();
        else this.stream();
      },
    );
}
