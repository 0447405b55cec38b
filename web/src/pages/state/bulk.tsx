// What is done to many jobs at once.

import { CirclePause, CirclePlay, MoreHorizontal, Octagon, RotateCw, X } from 'lucide-react';
import { useState } from 'react';
import type { Job } from '../../api/types';
import { useLanguage } from '../../i18n';
import { count } from '../../lib/format';
import { Button, IconButton } from '../../ui/basic';
import { TextField } from '../../ui/fields';
import { useFloor } from '../../ui/floor';
import { Dialog, Menu } from '../../ui/overlay';
import { useJobActions, type Still } from './actions';

export function MoveDialog({
  kind,
  ids,
  still,
  now,
  onClose,
}: {
  kind: 'queue' | 'priority';
  ids: readonly number[];
  still?: Still;
  /** One of them, for what is said of it now. */
  now: Pick<Job, 'queue' | 'priority'> | undefined;
  onClose: () => void;
}) {
  const { t } = useLanguage();
  const actions = useJobActions(still);
  const [value, setValue] = useState(String(now?.[kind] ?? ''));
  const wrong =
    kind === 'priority' && !/^-?\d+$/.test(value)
      ? t('move.number')
      : value
        ? null
        : t('move.empty');
  const send = async () => {
    if (wrong) return;
    await actions.move(
      ids,
      kind === 'queue'
        ? { to: 'queue', queue: value }
        : { to: 'priority', priority: Number(value) },
    );
    onClose();
  };
  return (
    <Dialog open onClose={onClose} title={t(`move.${kind}`)}>
      <form
        className="form"
        onSubmit={(event) => {
          event.preventDefault();
          void send();
        }}
      >
        <TextField
          label={t(kind === 'queue' ? 'col.queue' : 'col.priority')}
          hint={t(kind === 'queue' ? 'move.queueHint' : 'move.priorityHint')}
          error={value === '' ? null : wrong}
          value={value}
          onChange={setValue}
          inputMode={kind === 'priority' ? 'numeric' : 'text'}
          autoFocus
        />
        <footer className="dialog-foot">
          <Button onClick={onClose}>{t('common.cancel')}</Button>
          <Button type="submit" look="primary" disabled={wrong !== null}>
            {t('action.move')}
          </Button>
        </footer>
      </form>
    </Dialog>
  );
}

export function BulkBar({
  ids,
  still,
  jobs,
  more,
  onAll,
  onClear,
}: {
  ids: readonly number[];
  /** Which of them the list still has. */
  still: Still;
  /** Those of them that are loaded. */
  jobs: readonly Job[];
  /** There are jobs of this list that are not selected. */
  more: boolean;
  onAll: () => void;
  onClear: () => void;
}) {
  const { t, language } = useLanguage();
  const actions = useJobActions(still);
  const [move, setMove] = useState<'queue' | 'priority' | null>(null);
  const floor = useFloor();
  return (
    <div ref={floor} className="bulk" role="toolbar" aria-label={t('bulk.label')}>
      <strong>{t('bulk.count', { count: count(ids.length, language) })}</strong>
      {more && (
        <Button look="quiet" onClick={onAll}>
          {t('bulk.all')}
        </Button>
      )}
      <IconButton icon={X} label={t('bulk.clear')} onClick={onClear} />
      <span className="spacer" />
      <Button icon={CirclePause} onClick={() => void actions.pause(ids)}>
        {t('action.pause')}
      </Button>
      <Button icon={CirclePlay} onClick={() => void actions.resume(ids)}>
        {t('action.resume')}
      </Button>
      <Button icon={RotateCw} onClick={() => void actions.retry(ids)}>
        {t('action.retry')}
      </Button>
      <Button icon={Octagon} look="danger" onClick={() => void actions.kill(ids)}>
        {t('action.kill')}
      </Button>
      <Menu
        trigger={<IconButton icon={MoreHorizontal} label={t('action.more')} />}
        items={[
          { label: t('action.first'), onSelect: () => void actions.move(ids, { to: 'first' }) },
          { label: t('action.last'), onSelect: () => void actions.move(ids, { to: 'last' }) },
          { label: t('move.queue'), onSelect: () => setMove('queue') },
          { label: t('move.priority'), onSelect: () => setMove('priority') },
          { label: t('action.start'), onSelect: () => void actions.start(ids) },
          null,
          {
            label: t('action.forget'),
            danger: true,
            onSelect: () => void actions.forget(ids).then((gone) => gone && onClear()),
          },
        ]}
      />
      {move && (
        <MoveDialog
          kind={move}
          ids={ids}
          still={still}
          now={jobs[0]}
          onClose={() => setMove(null)}
        />
      )}
    </div>
  );
}
