// Dialogs, questions and passing remarks.

import { X } from 'lucide-react';
import { Dialog as Radix, AlertDialog, DropdownMenu } from 'radix-ui';
import {
  createContext,
  useCallback,
  useContext,
  useMemo,
  useRef,
  useState,
  type ComponentProps,
  type ReactNode,
} from 'react';
import { useLanguage } from '../i18n';
import { Button, IconButton } from './basic';

/** What the keys were at, to be led back there. What is chosen in a menu goes with it: its button stays. */
function keysAt(): Element | null {
  const at = document.activeElement;
  const menu = at?.closest('[role="menu"]')?.getAttribute('aria-labelledby');
  return menu ? document.getElementById(menu) : at;
}

/** Exists while its dialog is open. Nothing here opens by a trigger that the library would know of. */
function Content({
  of: Part,
  ...props
}: { of: typeof Radix.Content | typeof AlertDialog.Content } & ComponentProps<
  typeof Radix.Content
>) {
  const [before] = useState(keysAt);
  return (
    <Part
      {...props}
      onCloseAutoFocus={(event) => {
        event.preventDefault();
        if (before instanceof HTMLElement && before.isConnected) before.focus();
      }}
    />
  );
}

export function Dialog({
  title,
  description,
  open,
  onClose,
  children,
  wide = false,
  stays = false,
}: {
  title: string;
  description?: string;
  open: boolean;
  onClose: () => void;
  children: ReactNode;
  wide?: boolean;
  /** Also when somebody clicks beside it, as one with a form does. */
  stays?: boolean;
}) {
  const { t } = useLanguage();
  const content = useRef<HTMLDivElement>(null);
  /** A slip beside a form is no reason to lose what was written in it. */
  const stay = (event: Event) => {
    if (stays || content.current?.querySelector('form')) event.preventDefault();
  };
  return (
    <Radix.Root open={open} onOpenChange={(now) => !now && onClose()}>
      <Radix.Portal>
        <Radix.Overlay className="overlay" />
        <Content
          of={Radix.Content}
          ref={content}
          onInteractOutside={stay}
          className={`dialog ${wide ? 'wide' : ''}`}
          {...(description ? {} : { 'aria-describedby': undefined })}
        >
          <header className="dialog-head">
            <Radix.Title asChild>
              <h2>{title}</h2>
            </Radix.Title>
            <Radix.Close asChild>
              <IconButton label={t('common.close')} icon={X} />
            </Radix.Close>
          </header>
          {description && <Radix.Description className="muted">{description}</Radix.Description>}
          {children}
        </Content>
      </Radix.Portal>
    </Radix.Root>
  );
}

export interface Question {
  title: string;
  text: ReactNode;
  action: string;
  danger?: boolean;
}

interface Remark {
  id: number;
  text: string;
  tone: 'ok' | 'bad';
  undo?: Undo;
}

/** Where it gives a promise that fails, that is told. */
type Undo = () => unknown;

interface Overlays {
  /** Resolves to false when somebody thought better of it. */
  confirm: (question: Question) => Promise<boolean>;
  say: (text: string, more?: { undo?: Undo; tone?: 'ok' | 'bad' }) => void;
}

const Context = createContext<Overlays | null>(null);

const REMARK_TIME = 7_000;
const UNDO_TIME = 12_000;

export function OverlayProvider({ children }: { children: ReactNode }) {
  const { t } = useLanguage();
  const [question, setQuestion] = useState<Question | null>(null);
  const answer = useRef<(yes: boolean) => void>(() => undefined);
  const [remarks, setRemarks] = useState<Remark[]>([]);
  const nextId = useRef(1);

  const drop = useCallback(
    (id: number) => setRemarks((all) => all.filter((remark) => remark.id !== id)),
    [],
  );
  const say = useCallback<Overlays['say']>(
    (text, more = {}) => {
      const id = nextId.current++;
      const remark: Remark = { id, text, tone: more.tone ?? 'ok' };
      if (more.undo) remark.undo = more.undo;
      setRemarks((all) => [...all.slice(-2), remark]);
      setTimeout(() => drop(id), more.undo || more.tone === 'bad' ? UNDO_TIME : REMARK_TIME);
    },
    [drop],
  );
  const takeBack = async (id: number, undo: Undo) => {
    drop(id);
    try {
      await undo();
    } catch (error) {
      say((error as Error).message, { tone: 'bad' });
    }
  };
  const confirm = useCallback<Overlays['confirm']>(
    (asked) =>
      new Promise<boolean>((resolve) => {
        answer.current = resolve;
        setQuestion(asked);
      }),
    [],
  );
  const settle = (yes: boolean) => {
    answer.current(yes);
    answer.current = () => undefined;
    setQuestion(null);
  };
  const overlays = useMemo(() => ({ confirm, say }), [confirm, say]);

  return (
    <Context value={overlays}>
      {children}
      <AlertDialog.Root open={question !== null} onOpenChange={(open) => !open && settle(false)}>
        <AlertDialog.Portal>
          <AlertDialog.Overlay className="overlay" />
          <Content of={AlertDialog.Content} className="dialog narrow">
            <AlertDialog.Title asChild>
              <h2>{question?.title}</h2>
            </AlertDialog.Title>
            <AlertDialog.Description asChild>
              <div className="dialog-text">{question?.text}</div>
            </AlertDialog.Description>
            <footer className="dialog-foot">
              <AlertDialog.Cancel asChild>
                <Button>{t('common.cancel')}</Button>
              </AlertDialog.Cancel>
              <Button look={question?.danger ? 'danger' : 'primary'} onClick={() => settle(true)}>
                {question?.action}
              </Button>
            </footer>
          </Content>
        </AlertDialog.Portal>
      </AlertDialog.Root>
      <div className="remarks" role="status" aria-live="polite">
        {remarks.map(({ id, text, tone, undo }) => (
          <div key={id} className={`remark ${tone}`}>
            <span>{text}</span>
            {undo && (
              <Button look="quiet" onClick={() => void takeBack(id, undo)}>
                {t('common.undo')}
              </Button>
            )}
            <IconButton label={t('common.close')} icon={X} onClick={() => drop(id)} />
          </div>
        ))}
      </div>
    </Context>
  );
}

export function useOverlays(): Overlays {
  const overlays = useContext(Context);
  if (!overlays) throw new Error('useOverlays is used outside of OverlayProvider');
  return overlays;
}

export interface MenuItem {
  label: string;
  onSelect: () => void;
  danger?: boolean;
  disabled?: boolean;
  title?: string;
}

export function Menu({ trigger, items }: { trigger: ReactNode; items: (MenuItem | null)[] }) {
  return (
    <DropdownMenu.Root modal={false}>
      <DropdownMenu.Trigger asChild>{trigger}</DropdownMenu.Trigger>
      <DropdownMenu.Portal>
        <DropdownMenu.Content className="menu" align="end" sideOffset={4} collisionPadding={8}>
          {items.map((item, i) =>
            item ? (
              <DropdownMenu.Item
                key={item.label}
                className={`menu-item ${item.danger ? 'danger' : ''}`}
                disabled={item.disabled ?? false}
                title={item.title}
                onSelect={item.onSelect}
              >
                {item.label}
              </DropdownMenu.Item>
            ) : (
              <DropdownMenu.Separator key={`line-${i}`} className="menu-line" />
            ),
          )}
        </DropdownMenu.Content>
      </DropdownMenu.Portal>
    </DropdownMenu.Root>
  );
}
