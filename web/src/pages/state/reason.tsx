// Why a job waits, in one line, and card by card where cards are in the way.

import { ranges } from '../../api/client';
import type { Obstacle, Reason } from '../../api/types';
import { useLanguage, type Translate } from '../../i18n';
import { obstacleText, reasonText } from '../../lib/words';

export function useReason(reason: Reason): string {
  const { t } = useLanguage();
  // What goes through the cards one by one says the rest below.
  return reasonText(reason, reason.text, t);
}

/** Cards that the same is in the way of are told of together, "0-7": which, and what. */
export function alike(cards: readonly Obstacle[], t: Translate): [string, string][] {
  const all = new Map<string, number[]>();
  for (const card of cards) {
    const text = obstacleText(card, t);
    all.set(text, [...(all.get(text) ?? []), card.gpu]);
  }
  return [...all].map(([text, gpus]) => [ranges(gpus), text]);
}

export function Cards({ reason }: { reason: Reason }) {
  const { t } = useLanguage();
  return (
    <dl className="why-cards">
      {alike(reason.gpus, t).map(([gpus, text]) => (
        <div key={gpus}>
          <dt>GPU {gpus}</dt>
          <dd>{text}</dd>
        </div>
      ))}
    </dl>
  );
}
