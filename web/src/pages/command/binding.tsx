// Logs that belong to processes of command files.

import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { TAIL, configs, type Place } from '../../api/client';
import type { LogBinding } from '../../api/types';
import { useLanguage } from '../../i18n';
import { Button } from '../../ui/basic';
import { TextField } from '../../ui/fields';
import { Dialog, useOverlays } from '../../ui/overlay';
import { LogView } from '../state/log';
import { LogModel } from '../state/logmodel';

/** Another browser may bind and unbind; nothing tells of it. */
const IN_STEP = 1_000;

const same = (a: Omit<LogBinding, 'log_path' | 'bound_at'>, b: Place) =>
  a.mode === b.mode &&
  a.config_index === b.config_index &&
  a.queue_id === b.queue_id &&
  a.process_index === b.process_index;

export function useBinding(place: Place): LogBinding | undefined {
  const { data } = useQuery({
    queryKey: ['bindings'],
    queryFn: configs.bindings,
    refetchInterval: IN_STEP,
  });
  return Object.values(data ?? {}).find((binding) => same(binding, place));
}

export function BindDialog({
  place,
  path,
  onClose,
}: {
  place: Place;
  path: string;
  onClose: () => void;
}) {
  const { t } = useLanguage();
  const { say } = useOverlays();
  const client = useQueryClient();
  const [value, setValue] = useState(path);
  const act = async (what: () => Promise<unknown>, done: string) => {
    try {
      await what();
      await client.invalidateQueries({ queryKey: ['bindings'] });
      say(done);
      onClose();
    } catch (error) {
      say((error as Error).message, { tone: 'bad' });
    }
  };
  return (
    <Dialog open onClose={onClose} title={t('config.bindTitle')} description={t('config.bindText')}>
      <form
        className="form"
        onSubmit={(event) => {
          event.preventDefault();
          void act(() => configs.bind(place, value), t('config.bindDone', { path: value }));
        }}
      >
        <TextField
          label={t('config.bindPath')}
          value={value}
          onChange={setValue}
          spellCheck={false}
          autoFocus
        />
        <footer className="dialog-foot">
          {path && (
            <Button onClick={() => void act(() => configs.unbind(place), t('config.unbound'))}>
              {t('config.unbind')}
            </Button>
          )}
          <Button onClick={onClose}>{t('common.cancel')}</Button>
          <Button type="submit" look="primary" disabled={!value.trim()}>
            {t('config.bind')}
          </Button>
        </footer>
      </form>
    </Dialog>
  );
}

/** Lines are added to what is known of the log where they only follow it. */
function useGrowing(content: string | undefined): LogModel {
  const [model, setModel] = useState(() => new LogModel());
  const [known, setKnown] = useState('');
  useEffect(() => {
    if (content === undefined || content === known) return;
    if (content.startsWith(known)) {
      model.append(content.slice(known.length));
    } else {
      const anew = new LogModel();
      anew.append(content);
      setModel(anew);
    }
    setKnown(content);
  }, [content, known, model]);
  return model;
}

export function BoundLog({ place, onClose }: { place: Place; onClose: () => void }) {
  const { t } = useLanguage();
  const { data, error, isPending, dataUpdatedAt } = useQuery({
    queryKey: ['boundLog', place],
    queryFn: () => configs.log(place),
    refetchInterval: 2_000,
  });
  const model = useGrowing(data?.content);
  return (
    <Dialog
      wide
      open
      onClose={onClose}
      title={data?.log_path ?? t('config.bound')}
      description={t('config.boundText', { count: TAIL })}
    >
      <LogView
        model={model}
        version={dataUpdatedAt}
        loading={isPending}
        error={error?.message ?? null}
        running
        href={null}
      />
    </Dialog>
  );
}
