// What the memory of a card is made of.

import type { Gpu, GpuProcess } from '../../api/types';

export interface Split {
  own: number;
  /** Promised to own jobs, not yet used by them. */
  claimed: number;
  foreign: number;
  /** In use, and the driver does not say by whom: by own jobs, by others, or by both. */
  unknown: number;
  free: number;
  total: number;
}

const isOwn = (process: GpuProcess) => process.job !== null;
const isForeign = (process: GpuProcess) => process.job === null;

/** Whose the memory is that no process is known to hold. */
function ownerOfRest({ processes, claims }: Gpu): 'own' | 'foreign' | 'unknown' {
  if (!processes) return claims.length ? 'unknown' : 'foreign';
  if (!processes.some(isOwn)) return 'foreign';
  if (!processes.some(isForeign)) return 'own';
  const untold = processes.filter((process) => process.memory === null);
  if (!untold.some(isOwn)) return 'foreign';
  return untold.some(isForeign) ? 'unknown' : 'own';
}

/** Null: the probe does not know. */
export function splitMemory(gpu: Gpu): Split | null {
  const total = gpu.memory_total;
  const used = gpu.memory_used;
  if (total === null || used === null || total <= 0) return null;
  const processes = gpu.processes ?? [];
  const usedBy = (of: (process: GpuProcess) => boolean) =>
    processes.filter(of).reduce((sum, process) => sum + (process.memory ?? 0), 0);
  const split = { own: Math.min(used, usedBy(isOwn)), foreign: 0, unknown: 0 };
  split.foreign = Math.min(used - split.own, usedBy(isForeign));
  const rest = used - split.own - split.foreign;
  const owner = ownerOfRest(gpu);
  split[owner] += rest;
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
  // What jobs use beyond what is known of each was promised to them, too.
  const untold = owner === 'own' ? rest : 0;
  const claimed = Math.min(room, Math.max(0, open.reduce((sum, left) => sum + left, 0) - untold));
  return { ...split, claimed, free: room - claimed, total };
}
