// Attempts as bars on the GPUs that they held.

import type { Gpu, Span } from '../../api/types';

export interface Bar {
  span: Span;
  begin: number;
  end: number;
  /** Where several share a card each has a row of its own. */
  row: number;
}

export interface Lane {
  uuid: string;
  label: string;
  bars: Bar[];
  rows: number;
}

export function lanes(
  gpus: readonly Pick<Gpu, 'uuid' | 'index'>[],
  spans: readonly Span[],
  from: number,
  to: number,
): Lane[] {
  const byCard = new Map<string, Bar[]>();
  for (const span of [...spans].sort((a, b) => a.started_at - b.started_at)) {
    const begin = Math.max(from, span.started_at);
    const end = Math.min(to, span.ended_at ?? to);
    if (end < from || begin > to) continue;
    for (const uuid of span.gpu_uuids.length ? span.gpu_uuids : ['']) {
      const bars = byCard.get(uuid) ?? [];
      const taken = new Set(bars.filter((bar) => bar.end > begin).map((bar) => bar.row));
      let row = 0;
      while (taken.has(row)) row += 1;
      bars.push({ span, begin, end, row });
      byCard.set(uuid, bars);
    }
  }
  const lane = (uuid: string, label: string): Lane => {
    const bars = byCard.get(uuid) ?? [];
    return { uuid, label, bars, rows: Math.max(1, ...bars.map((bar) => bar.row + 1)) };
  };
  const known = gpus.map((gpu) => lane(gpu.uuid, `GPU ${gpu.index}`));
  const names = new Set(gpus.map((gpu) => gpu.uuid));
  const others = [...byCard.keys()]
    .filter((uuid) => !names.has(uuid))
    .map((uuid) => lane(uuid, uuid.slice(0, 12)));
  return [...known, ...others];
}

/** Its element. An attempt has a bar on every card that it held. */
export const idOf = (lane: Lane, bar: Bar): string => `bar-${lane.uuid}-${bar.span.attempt}`;

/** Which bar a key leads to, from another: along its card in time, or to what ran on the next at about that time. */
export function neighbour(drawn: readonly Lane[], id: string, key: string): string | null {
  const full = drawn.filter((lane) => lane.bars.length);
  const row = full.findIndex((lane) => lane.bars.some((bar) => idOf(lane, bar) === id));
  const lane = full[row];
  if (!lane) return null;
  const at = lane.bars.findIndex((bar) => idOf(lane, bar) === id);
  const along = (to: number) => {
    const bar = lane.bars.at(to);
    return bar ? idOf(lane, bar) : null;
  };
  const across = (to: Lane | undefined) => {
    const begin = lane.bars[at]?.begin ?? 0;
    const far = (bar: Bar) => Math.abs(bar.begin - begin);
    const next = to?.bars.reduce((a, b) => (far(b) < far(a) ? b : a));
    return to && next ? idOf(to, next) : null;
  };
  switch (key) {
    case 'ArrowLeft':
      return at > 0 ? along(at - 1) : null;
    case 'ArrowRight':
      return along(at + 1);
    case 'Home':
      return along(0);
    case 'End':
      return along(-1);
    case 'ArrowUp':
      return across(full[row - 1]);
    case 'ArrowDown':
      return across(full[row + 1]);
    default:
      return null;
  }
}
