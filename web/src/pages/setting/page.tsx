import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Copy, KeyRound, LogOut, Plus } from 'lucide-react';
import { useState } from 'react';
import { access, api } from '../../api/client';
import { useGuard } from '../../api/guard';
import { useLive, useMayChange, useScope, useSession, useStatus } from '../../api/data';
import type { Token } from '../../api/types';
import { useLanguage, type Language } from '../../i18n';
import { clock, count, duration, text } from '../../lib/format';
import { driverText, said } from '../../lib/said';
import { useTheme, type Theme } from '../../lib/theme';
import { Button, Command, Facts, IconButton, Panel, Skeleton } from '../../ui/basic';
import { Segmented, Select, TextField } from '../../ui/fields';
import { Missing } from '../../ui/missing';
import { Dialog, useOverlays } from '../../ui/overlay';

const DAY = 86_400_000;
/** The daemon tells no news of tokens; another browser may make and revoke some. */
const IN_STEP = 1_000;
const LASTING = { '1d': DAY, '30d': 30 * DAY, '365d': 365 * DAY, never: 0 } as const;
type Lasting = keyof typeof LASTING;

function Appearance() {
  const { t, language, setLanguage } = useLanguage();
  const [theme, setTheme] = useTheme();
  return (
    <Panel title={t('setting.appearance')} id="appearance">
      <div className="setting-row">
        <span>{t('setting.theme')}</span>
        <Segmented<Theme>
          label={t('setting.theme')}
          value={theme}
          onChange={setTheme}
          options={[
            ['system', t('theme.system')],
            ['light', t('theme.light')],
            ['dark', t('theme.dark')],
          ]}
        />
      </div>
      <div className="setting-row">
        <span>{t('setting.language')}</span>
        <Segmented<Language>
          label={t('setting.language')}
          value={language}
          onChange={setLanguage}
          options={[
            [
              'en',
              <span key="en" lang="en">
                English
              </span>,
            ],
            [
              'zh',
              <span key="zh" lang="zh-CN">
                中文
              </span>,
            ],
          ]}
        />
      </div>
    </Panel>
  );
}

function NewToken({ onClose }: { onClose: () => void }) {
  const { t } = useLanguage();
  const { say } = useOverlays();
  const client = useQueryClient();
  const [name, setName] = useState('');
  const [scope, setScope] = useState<'read' | 'full'>('read');
  const [lasting, setLasting] = useState<Lasting>('30d');
  const create = useMutation({
    mutationFn: () =>
      access.createToken({
        name,
        scope,
        lifetime_ms: LASTING[lasting],
      }),
    onSuccess: () => client.invalidateQueries({ queryKey: ['tokens'] }),
    onError: (error) => say(error.message, { tone: 'bad' }),
  });
  if (create.data) {
    const { secret } = create.data;
    return (
      <Dialog stays open onClose={onClose} title={t('token.made')} description={t('token.once')}>
        <div className="secret">
          <code>{secret}</code>
          <IconButton
            icon={Copy}
            label={t('common.copy')}
            onClick={() =>
              void navigator.clipboard.writeText(secret).then(() => say(t('common.copied')))
            }
          />
        </div>
        <p className="muted">{t('token.use')}</p>
        <footer className="dialog-foot">
          <Button look="primary" onClick={onClose}>
            {t('common.done')}
          </Button>
        </footer>
      </Dialog>
    );
  }
  return (
    <Dialog open onClose={onClose} title={t('token.new')}>
      <form
        className="form"
        onSubmit={(event) => {
          event.preventDefault();
          if (name.trim()) create.mutate();
        }}
      >
        <TextField
          label={t('token.name')}
          hint={t('token.nameHint')}
          value={name}
          onChange={setName}
          autoFocus
        />
        <Segmented
          label={t('token.scope')}
          value={scope}
          onChange={setScope}
          options={[
            ['read', t('scope.read')],
            ['full', t('scope.full')],
          ]}
        />
        <Select
          label={t('token.lasting')}
          value={lasting}
          onChange={(value) => setLasting(value as Lasting)}
          options={(Object.keys(LASTING) as Lasting[]).map((key) => [key, t(`lasting.${key}`)])}
        />
        <footer className="dialog-foot">
          <Button onClick={onClose}>{t('common.cancel')}</Button>
          <Button type="submit" look="primary" disabled={!name.trim() || create.isPending}>
            {t('token.create')}
          </Button>
        </footer>
      </form>
    </Dialog>
  );
}

function TokenRow({ token }: { token: Token }) {
  const { t, language } = useLanguage();
  const { confirm, say } = useOverlays();
  const mayChange = useMayChange();
  const here = useSession().data?.id === token.id;
  const client = useQueryClient();
  const name = token.kind === 'browser' ? t('tokenKind.browser') : token.name;
  const revoke = async () => {
    const yes = await confirm({
      title: t('token.revokeTitle', { name: here ? t('token.here') : name }),
      text: t(here ? 'token.signsOut' : 'token.revokeText'),
      action: t('token.revoke'),
      danger: true,
    });
    if (!yes) return;
    try {
      await access.revokeToken(token.id);
      say(t('token.revoked', { name }));
    } catch (error) {
      say((error as Error).message, { tone: 'bad' });
    }
    void client.invalidateQueries({ queryKey: ['tokens'] });
  };
  return (
    <tr>
      <th scope="row">
        {name}
        {here && <span className="badge badge-running">{t('token.here')}</span>}
        {token.kind === 'browser' && (
          <span className="muted"> {t('gpu.since', { time: clock(token.created, language) })}</span>
        )}
      </th>
      <td className="nowrap hide-narrow">
        {t(token.scope === 'full' ? 'scope.full' : 'scope.read')}
      </td>
      <td className="nowrap">
        {token.expires ? clock(token.expires, language) : t('lasting.never')}
      </td>
      <td className="nowrap hide-narrow">
        {token.last_used ? clock(token.last_used, language) : t('token.unused')}
      </td>
      <td className="num">
        {mayChange && (
          <Button
            look="quiet"
            onClick={() => void revoke()}
            aria-label={`${t('token.revoke')} ${name}`}
          >
            {t('token.revoke')}
          </Button>
        )}
      </td>
    </tr>
  );
}

function Tokens() {
  const { t } = useLanguage();
  const scope = useScope();
  const guard = useGuard();
  const [making, setMaking] = useState(false);
  const { data, error, isPending } = useQuery({
    queryKey: ['tokens'],
    queryFn: access.tokens,
    enabled: scope === 'full',
    refetchInterval: IN_STEP,
  });
  return (
    <Panel
      title={t('setting.tokens')}
      id="tokens"
      actions={
        <Button {...guard} icon={Plus} onClick={() => setMaking(true)}>
          {t('token.new')}
        </Button>
      }
    >
      <p className="muted">{t('token.lead')}</p>
      {scope === 'read' && <p className="muted">{t('token.notAllowed')}</p>}
      {scope !== 'read' && isPending && <Skeleton rows={2} />}
      {!data && <Missing error={error} />}
      {data?.tokens.length === 0 && (
        <p className="muted row">
          <KeyRound size={15} aria-hidden />
          {t('token.none')}
        </p>
      )}
      {data && data.tokens.length > 0 && (
        <div className="scroll-x" tabIndex={0} role="group" aria-labelledby="tokens">
          <table className="plain">
            <thead>
              <tr>
                <th scope="col">{t('token.name')}</th>
                <th scope="col" className="hide-narrow">
                  {t('token.scope')}
                </th>
                <th scope="col">{t('token.expires')}</th>
                <th scope="col" className="hide-narrow">
                  {t('token.lastUsed')}
                </th>
                <td />
              </tr>
            </thead>
            {(['token', 'browser'] as const).map((kind) => {
              const some = data.tokens.filter((token) => token.kind === kind);
              return (
                some.length > 0 && (
                  <tbody key={kind}>
                    <tr>
                      <th scope="rowgroup" colSpan={5} className="group">
                        {t(kind === 'token' ? 'token.tokens' : 'token.browsers')}
                      </th>
                    </tr>
                    {some.map((token) => (
                      <TokenRow key={token.id} token={token} />
                    ))}
                  </tbody>
                )
              );
            })}
          </table>
        </div>
      )}
      {making && <NewToken onClose={() => setMaking(false)} />}
    </Panel>
  );
}

function Listening() {
  const { t } = useLanguage();
  const { confirm, say } = useOverlays();
  const guard = useGuard();
  const { data: session } = useSession();
  const client = useQueryClient();
  const { data, error, isPending } = useQuery({ queryKey: ['listen'], queryFn: access.listen });
  const stop = async () => {
    const yes = await confirm({
      title: t('listen.stopTitle'),
      text: t('listen.stopText'),
      action: t('listen.stop'),
      danger: true,
    });
    if (!yes) return;
    await access.stopUi().catch((failure: Error) => say(failure.message, { tone: 'bad' }));
    void client.invalidateQueries({ queryKey: ['listen'] });
  };
  const leave = () =>
    void access.logout().then(
      () => location.reload(),
      (failure: Error) => say(failure.message, { tone: 'bad' }),
    );
  return (
    <Panel
      title={t('setting.listening')}
      id="listening"
      actions={
        session?.via === 'cookie' && (
          <Button icon={LogOut} onClick={leave}>
            {t('listen.leave')}
          </Button>
        )
      }
    >
      {isPending && <Skeleton rows={2} />}
      {!data && <Missing error={error} />}
      {data && (
        <>
          <Facts
            items={[
              [
                t('listen.where'),
                data.listening ? (
                  <code key="w">
                    {data.address}:{data.port}
                  </code>
                ) : (
                  t('listen.off')
                ),
              ],
              [t('listen.problem'), data.problem],
              [
                t('listen.tls'),
                data.listening ? t(data.tls ? 'common.yes' : 'listen.loopback') : null,
              ],
              [
                t('listen.you'),
                session
                  ? `${session.user} · ${t(session.scope === 'full' ? 'scope.full' : 'scope.read')}`
                  : null,
              ],
            ]}
          />
          <p className="muted">{t('listen.text')}</p>
          <Command>berth ui</Command>
          {data.listening && (
            <div className="row">
              <Button {...guard} look="danger" onClick={() => void stop()}>
                {t('listen.stop')}
              </Button>
            </div>
          )}
        </>
      )}
    </Panel>
  );
}

function About() {
  const { t, language } = useLanguage();
  const { data: status } = useStatus();
  const { link } = useLive();
  const health = useQuery({ queryKey: ['health'], queryFn: api.health, refetchInterval: 10_000 });
  return (
    <Panel title={t('setting.about')} id="about">
      {health.data && (
        <p className={`health ${health.data.status}`} role="status">
          <strong>{t(`health.${health.data.status}`)}</strong>
        </p>
      )}
      <ul className="reasons">
        {health.data?.reasons.map((reason) => (
          <li key={reason.what + reason.message}>
            {t('health.of', { what: t(`health.${reason.what}`), message: said(reason.message, t) })}
          </li>
        ))}
      </ul>
      {status ? (
        <Facts
          items={[
            [t('about.version'), status.version],
            [t('about.node'), status.node],
            [t('about.instance'), <code key="i">{text(status.instance)}</code>],
            [t('about.uptime'), duration(status.uptime_ms)],
            [t('about.pid'), status.pid],
            [t('about.driver'), driverText(status.probe, t)],
            [t('about.link'), t(`link.${link}`)],
            [
              t('about.loop'),
              t('about.loopText', {
                tasks: count(status.loop.tasks, language),
                slow: count(status.loop.over_5ms, language),
                longest: (status.loop.longest_us / 1000).toFixed(1),
              }),
            ],
            [
              t('about.api'),
              <a key="a" href="/api/docs">
                /api/docs
              </a>,
            ],
          ]}
        />
      ) : (
        <Skeleton rows={4} />
      )}
    </Panel>
  );
}

export default function SettingPage() {
  const { t } = useLanguage();
  return (
    <>
      <header className="page-head">
        <h1>{t('nav.setting')}</h1>
      </header>
      <div className="settings">
        <div className="stack">
          <Appearance />
          <Tokens />
        </div>
        <div className="stack">
          <About />
          <Listening />
        </div>
      </div>
    </>
  );
}
