import { PLACES } from '../app';
import { useLanguage, type Key } from '../i18n';
import { Dialog } from '../ui/overlay';

const EVERYWHERE: readonly (readonly [string, Key])[] = [
  ['/', 'help.search'],
  ['?', 'help.help'],
  ['Esc', 'help.escape'],
];
const JOBS: readonly (readonly [string, Key])[] = [
  ['j', 'help.down'],
  ['k', 'help.up'],
  ['Enter', 'help.open'],
  ['x', 'help.select'],
  ['a', 'help.all'],
  ['u', 'help.back'],
];
const LOG: readonly (readonly [string, Key])[] = [
  ['n', 'help.next'],
  ['N', 'help.previous'],
  ['e', 'help.error'],
  ['w', 'help.wrap'],
  ['f', 'help.follow'],
];
const TIMELINE: readonly (readonly [string, Key])[] = [
  ['← →', 'help.along'],
  ['↑ ↓', 'help.across'],
];

function Keys({ of, title }: { of: readonly (readonly [string, Key])[]; title: string }) {
  const { t } = useLanguage();
  return (
    <section>
      <h3>{title}</h3>
      <dl className="keys">
        {of.map(([key, text]) => (
          <div key={key}>
            <dt>
              {key.split(' ').map((part) => (
                <kbd key={part}>{part}</kbd>
              ))}
            </dt>
            <dd>{t(text)}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

export function Help({ open, onClose }: { open: boolean; onClose: () => void }) {
  const { t } = useLanguage();
  return (
    <Dialog title={t('help.title')} open={open} onClose={onClose} wide>
      <div className="columns">
        <Keys
          of={[...EVERYWHERE, ...PLACES.map(({ jump, key }) => [jump, key] as const)]}
          title={t('help.everywhere')}
        />
        <Keys of={JOBS} title={t('help.jobs')} />
        <Keys of={LOG} title={t('help.log')} />
        <Keys of={TIMELINE} title={t('view.timeline')} />
      </div>
    </Dialog>
  );
}
