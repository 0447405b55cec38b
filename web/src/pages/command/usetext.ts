// The text of a command file as it is written here, beside what others make of the file meanwhile.

import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { configs, type Mode } from '../../api/client';
import { useDraft } from '../../lib/draft';

/** They are files: editors and other browsers write them, and nothing tells of it. */
export const IN_STEP = 1_000;

interface Draft {
  text: string;
  /** What it was made from: it replaces that version, and no newer one. */
  version: string;
}

export function useConfigText(mode: Mode, index: number) {
  const client = useQueryClient();
  const queryKey = ['config', mode, index];
  const { data, error } = useQuery({
    queryKey,
    queryFn: () => configs.read(mode, index),
    staleTime: 0,
    refetchInterval: IN_STEP,
  });
  const [draft, setDraft] = useDraft<Draft | null>(`${mode} ${index}`, null);
  const [saving, setSaving] = useState(false);
  const changed = draft !== null && draft.text !== data?.text;
  const put = async (version: string) => {
    if (draft === null) return;
    setSaving(true);
    try {
      const now = await configs.write(mode, index, draft.text, version);
      await client.cancelQueries({ queryKey }); // an answer on its way may be older
      client.setQueryData(queryKey, { ...now, text: draft.text });
      // What was typed meanwhile was made from what has just been saved.
      setDraft((later) =>
        later === null || later.text === draft.text
          ? null
          : { text: later.text, version: now.version },
      );
    } finally {
      setSaving(false);
    }
  };
  return {
    file: data,
    error,
    text: draft?.text ?? data?.text ?? '',
    changed,
    saving,
    /** Somebody else has written the file since this text was begun. */
    conflict: changed && !saving && data !== undefined && draft.version !== data.version,
    write: (text: string) =>
      setDraft((before) => {
        if (text === data?.text) return null;
        const own = before && before.text !== data?.text ? before.version : undefined;
        return { text, version: own ?? data?.version ?? '' };
      }),
    save: () => put(draft?.version ?? ''),
    /** Replaces what others have written, as far as that is known here. */
    overwrite: () => put(data?.version ?? ''),
    /** What it gives brings the text back. */
    discard: (): (() => void) => {
      setDraft(() => null);
      return () => setDraft(() => draft);
    },
  };
}
