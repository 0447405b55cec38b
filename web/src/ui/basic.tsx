import {
  Ban,
  CircleCheck,
  CircleDot,
  CirclePause,
  CircleSlash,
  CircleX,
  Clock,
  type LucideIcon,
} from 'lucide-react';
import type { ButtonHTMLAttributes, ReactNode } from 'react';
import type { JobState } from '../api/types';
import { useLanguage } from '../i18n';

type ButtonProps = ButtonHTMLAttributes<HTMLButtonElement> & {
  look?: 'plain' | 'primary' | 'danger' | 'quiet';
  icon?: LucideIcon;
};

export function Button({ look = 'plain', icon: Icon, children, className, ...rest }: ButtonProps) {
  return (
    <button type="button" className={`button ${look} ${className ?? ''}`} {...rest}>
      {Icon && <Icon size={15} aria-hidden />}
      {children}
    </button>
  );
}

export function IconButton({
  label,
  icon: Icon,
  className,
  ...rest
}: ButtonHTMLAttributes<HTMLButtonElement> & { label: string; icon: LucideIcon }) {
  return (
    <button
      type="button"
      className={`icon-button ${className ?? ''}`}
      aria-label={label}
      title={label}
      {...rest}
    >
      <Icon size={16} aria-hidden />
    </button>
  );
}

const STATE_ICONS: Record<JobState, LucideIcon> = {
  queued: Clock,
  running: CircleDot,
  paused: CirclePause,
  succeeded: CircleCheck,
  failed: CircleX,
  killed: Ban,
  cancelled: CircleSlash,
};

export function StateIcon({ state, size = 14 }: { state: JobState; size?: number }) {
  const Icon = STATE_ICONS[state];
  return <Icon size={size} aria-hidden className={`state-${state}`} />;
}

export function StateBadge({ state, note }: { state: JobState; note?: string | null }) {
  const { t } = useLanguage();
  return (
    <span className={`badge badge-${state}`}>
      <StateIcon state={state} size={13} />
      {t(`state.${state}`)}
      {note ? (
        <span className="badge-note" title={note}>
          {note}
        </span>
      ) : null}
    </span>
  );
}

export function Empty({
  icon: Icon,
  title,
  children,
  actions,
  whole = false,
}: {
  icon: LucideIcon;
  title: string;
  children?: ReactNode;
  actions?: ReactNode;
  /** It is all that the page has. */
  whole?: boolean;
}) {
  return (
    <div className="empty">
      <Icon size={30} strokeWidth={1.4} aria-hidden />
      {whole ? <h1>{title}</h1> : <h2>{title}</h2>}
      {children && <div className="empty-text">{children}</div>}
      {actions && <div className="row">{actions}</div>}
    </div>
  );
}

export function Skeleton({ rows = 6, tall = false }: { rows?: number; tall?: boolean }) {
  const { t } = useLanguage();
  return (
    <div className="skeleton" role="status">
      <span className="visually-hidden">{t('common.loading')}</span>
      {Array.from({ length: rows }, (_, i) => (
        <span key={i} className={tall ? 'tall' : ''} />
      ))}
    </div>
  );
}

export function Panel({
  title,
  actions,
  children,
  className,
  id,
}: {
  title?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
  className?: string;
  id?: string;
}) {
  return (
    <section className={`panel ${className ?? ''}`} aria-labelledby={title && id ? id : undefined}>
      {(title ?? actions) && (
        <header className="panel-head">
          <h2 id={id}>{title}</h2>
          <div className="row">{actions}</div>
        </header>
      )}
      {children}
    </section>
  );
}

/** Name and value in two columns. What is not known is left out. */
export function Facts({ items }: { items: readonly (readonly [string, ReactNode])[] }) {
  const known = items.filter(([, value]) => value !== null && value !== undefined && value !== '');
  return (
    <dl className="facts">
      {known.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

export function Command({ children }: { children: string }) {
  return (
    <code className="command">
      <span aria-hidden>$ </span>
      {children}
    </code>
  );
}
