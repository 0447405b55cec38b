// Why a job waits, in one line, and card by card where cards are in the way.

import type { Reason } from '../../api/types';
import { useLanguage } from '../../i18n';
import { obstacleText, reasonText } from '../../lib/words';

export function useReason(reason: Reason): string {
  const { t } = useLanguage();
  // What goes through the cards one by one says the rest below.
  return reasonText(reason, reason.text, t);
}

export function Cards({ reason }: { reason: Reason }) {
  const { t } = useLanguage();
  return (
    <dl className="why-cards">
      {reason.gpus.map((card) => (
        <div key={card.gpu}>
          <dt>GPU {card.gpu}</dt>
          <dd>{obstacleText(card, t)}</dd>
        </div>
      ))}
    </dl>
  );
}
