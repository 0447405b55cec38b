// What the memory of a card is made of.

import type { Gpu, GpuProcess } from '../../api/types';

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
  const usedBy = (of: (process: GpuProcess) => boolean) =>
    processes.filter(of).reduce((sum, process) => sum + (process.memory ?? 0), 0);
  const own = Math.min(
    used,
    usedBy((process) => process.job !== null),
  );
  const room = Math.max(0, total - used);
  // A job that uses more than it was promised takes nothing of what another has not used yet.
  const open = gpu.claims.map(({ job, attempt, memory }) =>
    memory === null
      ? room
      : Math.max(
          0,
          memory - usedBy((process) => process.job === job && process.attempt === attempt),
        ),
  );
  const claimed = Math.min(
    room,
    open.reduce((sum, rest) => sum + rest, 0),
  );
  return { own, claimed, foreign: used - own, free: room - claimed, total };
}
