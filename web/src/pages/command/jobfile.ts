// The job file that is being written.

import type { Dialect } from '../../api/types';
import { recall, remember, useRemembered } from '../../lib/store';
import { SAMPLES } from './samples';

export interface JobFile {
  text: string;
  name: string;
  dialect: Dialect;
  /** Empty: where jobs usually run. */
  cwd: string;
}

const KEYS = {
  text: 'berth.file.text',
  name: 'berth.file.name',
  dialect: 'berth.file.dialect',
  cwd: 'berth.file.cwd',
} as const satisfies Record<keyof JobFile, string>;

/** A text nobody has touched may give way to another. */
export const untouched = (text: string): boolean =>
  !text.trim() || Object.values(SAMPLES).some((sample) => sample.text === text);

export function useJobFile(): [JobFile, (change: Partial<JobFile>) => void] {
  const { text: sample, name: usual } = SAMPLES.native;
  const [text, setText] = useRemembered<string>(KEYS.text, sample);
  const [name, setName] = useRemembered<string>(KEYS.name, usual);
  const [dialect, setDialect] = useRemembered<Dialect>(KEYS.dialect, 'native');
  const [cwd, setCwd] = useRemembered<string>(KEYS.cwd, '');
  return [
    { text, name, dialect, cwd },
    (change) => {
      if (change.text !== undefined) setText(change.text);
      if (change.name !== undefined) setName(change.name);
      if (change.dialect !== undefined) setDialect(change.dialect);
      if (change.cwd !== undefined) setCwd(change.cwd);
    },
  ];
}

function put(file: JobFile): void {
  for (const part of ['text', 'name', 'dialect', 'cwd'] as const) remember(KEYS[part], file[part]);
}

/** Puts another in its place. What somebody had written there can be brought back by what this gives. */
export function replaceJobFile(next: JobFile): (() => void) | null {
  const before: JobFile = {
    text: recall(KEYS.text, ''),
    name: recall(KEYS.name, SAMPLES.native.name),
    dialect: recall(KEYS.dialect, 'native') as Dialect,
    cwd: recall(KEYS.cwd, ''),
  };
  put(next);
  return untouched(before.text) || before.text === next.text ? null : () => put(before);
}
