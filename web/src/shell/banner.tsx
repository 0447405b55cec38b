// What is wrong with the instance as a whole, above every page.

import { CirclePause, Eye, TriangleAlert, Unplug } from 'lucide-react';
import { useEffect, useState, type ReactNode } from 'react';
import { api } from '../api/client';
import { live, useLive, useSession, useStatus } from '../api/data';
import { useGuard } from '../api/guard';
import { useLanguage } from '../i18n';
import { clock } from '../lib/format';
import { said } from '../lib/said';
import { Button } from '../ui/basic';
import { useOverlays } from '../ui/overlay';

function Line({
  tone,
  icon: Icon,
  children,
  action,
}: {
  tone: 'bad' | 'warn' | 'note';
  icon: typeof Eye;
  children: ReactNode;
  action?: ReactNode;
}) {
  return (
    <div className={`banner ${tone}`} role={tone === 'bad' ? 'alert' : 'status'}>
      <Icon size={16} aria-hidden />
      <span>{children}</span>
      {action}
    </div>
  );
}

function Gone() {
  const { t, language } = useLanguage();
  const { retryAt, heard } = useLive();
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 500);
    return () => clearInterval(timer);
  }, []);
  const seconds = retryAt ? Math.max(0, Math.ceil((retryAt - now) / 1000)) : 0;
  return (
    <Line
      tone="bad"
      icon={Unplug}
      action={
        <Button look="quiet" onClick={live.retry}>
          {t('gone.now')}
        </Button>
      }
    >
      <strong>{t('gone.title')}</strong>{' '}
      {heard ? t('gone.shown', { time: clock(heard, language) }) : t('gone.never')}{' '}
      {t('gone.again', { seconds })}
    </Line>
  );
}

export function Banner() {
  const { t } = useLanguage();
  const { link } = useLive();
  const { data: status } = useStatus();
  const { data: session } = useSession();
  const guard = useGuard();
  const { say } = useOverlays();
  const problems = status?.problems ?? [];
  return (
    <>
      {link === 'gone' && <Gone />}
      {status?.space.low && (
        <Line tone="bad" icon={TriangleAlert}>
          <strong>{t('banner.space')}</strong> {said(status.space.detail ?? '', t)}
        </Line>
      )}
      {status?.paused && (
        <Line
          tone="warn"
          icon={CirclePause}
          action={
            <Button
              {...guard}
              look="quiet"
              onClick={() =>
                void api
                  .resumeInstance()
                  .catch((error: Error) => say(error.message, { tone: 'bad' }))
              }
            >
              {t('action.resume')}
            </Button>
          }
        >
          {t('banner.paused')}
        </Line>
      )}
      {status?.probe.error && (
        <Line tone="warn" icon={TriangleAlert}>
          <strong>{t('banner.probe')}</strong> {said(status.probe.error, t)}
        </Line>
      )}
      {problems.map((problem) => (
        <Line key={problem} tone="warn" icon={TriangleAlert}>
          {said(problem, t)}
        </Line>
      ))}
      {session?.scope === 'read' && (
        <Line tone="note" icon={Eye}>
          {t('banner.readonly')}
        </Line>
      )}
    </>
  );
}
