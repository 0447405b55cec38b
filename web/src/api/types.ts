// Short names for what docs/openapi.yaml describes; schema.d.ts is made from it.

import type { components } from './schema';

type Schemas = components['schemas'];

export const JOB_STATES = [
  'queued',
  'running',
  'paused',
  'succeeded',
  'failed',
  'killed',
  'cancelled',
] as const satisfies readonly Schemas['State'][];

export type JobState = Schemas['State'];
export type Bytes = Schemas['Bytes'];
export type Job = Schemas['Job'];
export type JobPage = Schemas['JobPage'];
export type Attempt = Schemas['Attempt'];
export type JobDetail = Schemas['JobDetail'];
export type Why = Schemas['Why'];
export type Cause = Schemas['Cause'];
export type Reason = Schemas['Reason'];
export type Obstacle = Schemas['Obstacle'];
export type FailureClass = Schemas['FailureClass'];
export type Gpu = Schemas['Gpu'];
export type GpuProcess = NonNullable<Gpu['processes']>[number];
export type GpuPoint = Schemas['GpuHistory']['points'][number];
export type Usage = Schemas['Usage'];
export type Status = Schemas['Status'];
export type LiveStatus = Schemas['LiveStatus'];
export type HistoryEvent = Schemas['Event'];
export type Batch = Schemas['Batch'];
export type Queue = Schemas['QueueDetail'];
export type Rule = Schemas['Rules']['rules'][number];
export type RuleChange = Schemas['SetRules'];
export type Preview = Schemas['Preview'];
export type Problem = Schemas['Problem'];
export type Checked = Schemas['Checked'];
export type Dialect = Checked['dialect'];
export type Span = Schemas['Span'];
export type Results = Schemas['Results'];
export type ControlAnswer = Schemas['Controlled'];
export type Health = Schemas['Health'];
export type JobSpec = Schemas['JobSpec'];
export type Token = Schemas['Token'];
export type Session = Schemas['Session'];
export type ConfigFile = Schemas['ConfigFile'] & Schemas['ConfigContent'];
export type CommandQueue = Schemas['CommandQueue'];
export type CommandProcess = Schemas['CommandProcess'];
export type SchedulerState = Schemas['SchedulerState'];
export type SchedulerProcess = Schemas['SchedulerProcess'];
export type LogBinding = Schemas['LogBinding'];
