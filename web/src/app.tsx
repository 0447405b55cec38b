import {
  ChartNoAxesCombined,
  Cpu,
  FilePlus2,
  ListTree,
  LogIn,
  Settings,
  SlidersHorizontal,
  type LucideIcon,
} from 'lucide-react';
import { Suspense, useEffect, useState } from 'react';
import { Link, Redirect, Route, Router, Switch, useLocation, useSearch } from 'wouter';
import { useLive } from './api/data';
import { useLanguage, type Key } from './i18n';
import { Banner } from './shell/banner';
import { Boundary } from './shell/boundary';
import { Connection } from './shell/connection';
import { Help } from './shell/help';
import { useKeys } from './lib/keys';
import { later } from './lib/later';
import { visited } from './lib/place';
import { useTheme } from './lib/theme';
import { useTitle } from './lib/title';
import { Command, Empty, Skeleton } from './ui/basic';
import { GpuPage } from './pages/gpu/page';

const StatePage = later(() => import('./pages/state/page'));
const JobPage = later(() => import('./pages/state/job'));
const CommandPage = later(() => import('./pages/command/page'));
const RulePage = later(() => import('./pages/rule/page'));
const ResultsPage = later(() => import('./pages/results/page'));
const SettingPage = later(() => import('./pages/setting/page'));

interface Place {
  path: string;
  key: Key;
  icon: LucideIcon;
  jump: string;
}

export const PLACES: readonly Place[] = [
  { path: '/gpu', key: 'nav.gpu', icon: Cpu, jump: 'g g' },
  { path: '/state', key: 'nav.state', icon: ListTree, jump: 'g j' },
  { path: '/command', key: 'nav.command', icon: FilePlus2, jump: 'g s' },
  { path: '/results', key: 'nav.results', icon: ChartNoAxesCombined, jump: 'g e' },
  { path: '/rule', key: 'nav.rule', icon: SlidersHorizontal, jump: 'g r' },
  { path: '/setting', key: 'nav.setting', icon: Settings, jump: 'g o' },
];

function Places({ place }: { place: 'rail' | 'tabs' }) {
  const { t } = useLanguage();
  const [location] = useLocation();
  return (
    <nav className={place} aria-label={t('nav.label')}>
      {place === 'rail' && (
        <Link href="/gpu" className="brand">
          <Mark />
          berth
        </Link>
      )}
      <ul>
        {PLACES.map(({ path, key, icon: Icon }) => (
          <li key={path}>
            <Link href={path} aria-current={location.startsWith(path) ? 'page' : undefined}>
              <Icon size={17} strokeWidth={1.8} aria-hidden />
              <span>{t(key)}</span>
            </Link>
          </li>
        ))}
      </ul>
      {place === 'rail' && <Connection />}
    </nav>
  );
}

/** A ship at its berth. */
function Mark() {
  return (
    <svg width="22" height="22" viewBox="0 0 32 32" aria-hidden className="mark">
      <path d="M5 19h22l-3.4 6.5H8.4z" />
      <rect x="8.5" y="11.5" width="4.2" height="5.5" rx="1" className="soft" />
      <rect x="13.9" y="7" width="4.2" height="10" rx="1" />
      <rect x="19.3" y="11.5" width="4.2" height="5.5" rx="1" className="soft" />
    </svg>
  );
}

function Denied() {
  const { t } = useLanguage();
  return (
    <main className="page" id="main">
      <Empty whole icon={LogIn} title={t('denied.title')}>
        <p>{t('denied.text')}</p>
        <Command>berth ui</Command>
      </Empty>
    </main>
  );
}

function Pages() {
  return (
    <Suspense fallback={<Skeleton rows={8} />}>
      <Switch>
        <Route path="/gpu" component={GpuPage} />
        <Route path="/state/:id">{({ id }) => <JobPage key={id} id={Number(id)} />}</Route>
        <Route path="/state" component={StatePage} />
        <Route path="/command" component={CommandPage} />
        <Route path="/rule" component={RulePage} />
        <Route path="/results" component={ResultsPage} />
        <Route path="/setting" component={SettingPage} />
        <Route>
          <Redirect to="/gpu" replace />
        </Route>
      </Switch>
    </Suspense>
  );
}

function Shell() {
  const { t } = useLanguage();
  const [location, go] = useLocation();
  const search = useSearch();
  const [help, setHelp] = useState(false);
  const { link } = useLive();
  useEffect(() => visited(location, search), [location, search]);
  const place = PLACES.find(({ path }) => location === path);
  useTitle(place ? t(place.key) : null);
  useKeys({
    '?': () => setHelp(true),
    '/': () => {
      const search = document.querySelector<HTMLInputElement>('[data-search]');
      if (search) search.focus();
      else go('/state?focus=1');
    },
    ...Object.fromEntries(PLACES.map(({ jump, path }) => [jump, () => go(path)])),
  });
  return (
    <div className="shell">
      <a className="skip" href="#main">
        {t('nav.skip')}
      </a>
      <Places place="rail" />
      <div className="content">
        <Banner />
        {link === 'denied' ? (
          <Denied />
        ) : (
          <Boundary place={`${location}?${search}`} link={link}>
            <main className="page" id="main" tabIndex={-1}>
              <Pages />
            </main>
          </Boundary>
        )}
      </div>
      <Places place="tabs" />
      <Help open={help} onClose={() => setHelp(false)} />
    </div>
  );
}

export function App() {
  useTheme();
  return (
    <Router base="/ui">
      <Shell />
    </Router>
  );
}
