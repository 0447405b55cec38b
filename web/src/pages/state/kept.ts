// What a job was told to wait for, as far as a copy of it can still wait for that.

import { api } from '../../api/client';
import type { JobDetail } from '../../api/types';
import { LIVING } from './actions';

export interface Kept {
  /** Jobs that have not ended. */
  after: number[];
  /** When that is still to come. */
  startAt: number | null;
}

export const NOTHING: Kept = { after: [], startAt: null };

export async function keptOf(detail: JobDetail, now = Date.now()): Promise<Kept> {
  const open = await api.parts(detail.after, [], { state: LIVING.join(',') });
  return {
    after: open.map((job) => job.id),
    startAt: detail.start_at !== null && detail.start_at > now ? detail.start_at : null,
  };
}
