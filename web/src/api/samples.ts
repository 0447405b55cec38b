// The last minutes of every GPU, for the small charts. The daemon's own history has the week.

import { useSyncExternalStore } from 'react';
import type { Gpu, GpuPoint } from './types';

const KEPT = 150;
const EVERY = 900;

const rings = new Map<string, GpuPoint[]>();
const watchers = new Set<() => void>();

const tell = () => {
  for (const watcher of watchers) watcher();
};

export function record(gpus: readonly Gpu[], now = Date.now()): void {
  for (const gpu of gpus) {
    const ring = rings.get(gpu.uuid) ?? [];
    const last = ring.at(-1);
    if (last && now - last.t < EVERY) continue;
    const point: GpuPoint = {
      t: now,
      memory_used: gpu.memory_used,
      utilization: gpu.utilization,
      temperature: gpu.temperature,
      power_mw: gpu.power_mw,
    };
    rings.set(gpu.uuid, [...ring.slice(1 - KEPT), point]);
  }
  tell();
}

/** What was before this page was opened. */
export function seed(uuid: string, points: readonly GpuPoint[]): void {
  const ring = rings.get(uuid) ?? [];
  const begin = ring[0]?.t ?? Infinity;
  rings.set(uuid, [...points.filter((point) => point.t < begin), ...ring].slice(-KEPT));
  tell();
}

const none: GpuPoint[] = [];

export function useSamples(uuid: string): GpuPoint[] {
  return useSyncExternalStore(
    (watcher) => {
      watchers.add(watcher);
      return () => watchers.delete(watcher);
    },
    () => rings.get(uuid) ?? none,
  );
}
