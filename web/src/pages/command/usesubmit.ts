// Submits a text as a job file: what was checked, and nothing else.

import { useEffect, useState } from 'react';
import { useLocation } from 'wouter';
import { api } from '../../api/client';
import { useMayChange } from '../../api/data';
import { useLanguage, type Key } from '../../i18n';
import { newKey } from '../../lib/key';
import { useOverlays } from '../../ui/overlay';
import { useCheck, type Check, type JobText } from './usecheck';

const WHY_NOT = {
  nothing: 'check.nothing',
  nowhere: 'check.nowhere',
  wrong: 'file.refused',
  failed: 'file.refused',
} as const satisfies Record<string, Key>;

export interface Submit {
  check: Check;
  /** Before the text as it stands has been checked it waits for that. */
  submit: () => void;
  /** Somebody wants it submitted, and it is not yet. */
  waiting: boolean;
  disabled: boolean;
  label: string;
}

export function useSubmit(file: JobText): Submit {
  const { t } = useLanguage();
  const { say } = useOverlays();
  const [, go] = useLocation();
  const mayChange = useMayChange();
  const check = useCheck(file);
  // The same key for every try, and one try at a time.
  const [key, setKey] = useState(newKey);
  const [sending, setSending] = useState(false);
  const [wanted, setWanted] = useState(false);
  const { text, name, dialect, cwd } = file;
  useEffect(() => {
    setKey(newKey());
    setWanted(false); // it was another text that was to be submitted
  }, [text, name, dialect, cwd]);

  const send = async () => {
    setSending(true);
    try {
      const answer = await api.submitFile({ text, name, dialect, cwd, key });
      const skipped = answer.skipped.length;
      const [first, last = first] = answer.ids;
      if (first === undefined || last === undefined) {
        say(t('file.nothingLeft', { skipped }));
      } else {
        const count = last - first + 1;
        say(skipped ? t('file.skipped', { count, skipped }) : t('file.done', { count }), {
          undo: () => api.kill(Array.from({ length: count }, (_, i) => first + i)),
        });
        go(answer.batch ? `/state?batch=${answer.batch}` : '/state');
      }
    } catch (error) {
      say((error as Error).message, { tone: 'bad' });
    }
    setSending(false);
  };
  useEffect(() => {
    if (!wanted || check.state === 'pending') return;
    setWanted(false);
    if (check.state === 'right') void send();
    else say(check.error?.message ?? t(WHY_NOT[check.state]), { tone: 'bad' });
    // eslint-disable-next-line react-hooks/exhaustive-deps -- when the answer is there
  }, [wanted, check.state]);

  return {
    check,
    submit: () => {
      if (!mayChange || sending) return;
      check.now();
      setWanted(true);
    },
    waiting: wanted || sending,
    disabled: check.state !== 'right' || wanted || sending,
    label:
      check.state === 'right' && check.checked
        ? t('file.submit', { count: check.checked.total })
        : t('file.submitNone'),
  };
}
