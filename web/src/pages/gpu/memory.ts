// What the memory of a card is made of.

import type { Gpu } from '../../api/types';

export interface Split {
  own: number;
  /** Promised to own jobs, not yet used by them. */
  claimed: number;
  foreign: number;
  free: number;
  total: number;
}

/** Null: the probe does not know. */
export function splitMemory(gpu: Gpu): Split | null {
  const total = gpu.memory_total;
  const used = gpu.memory_used;
  if (total === null || used === null || total <= 0) return null;
  const processes = gpu.processes ?? [];
  const own = Math.min(
    used,
    processes.reduce((sum, process) => sum + (process.job ? (process.memory ?? 0) : 0), 0),
  );
  const room = Math.max(0, total - used);
  const whole = gpu.claims.some((claim) => claim.memory === null);
  const promised = gpu.claims.reduce((sum, claim) => sum + (claim.memory ?? 0), 0);
  const claimed = whole ? room : Math.min(room, Math.max(0, promised - own));
  return { own, claimed, foreign: used - own, free: room - claimed, total };
}
