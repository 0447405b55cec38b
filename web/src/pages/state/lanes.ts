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
