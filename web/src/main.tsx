import '@fontsource-variable/geist';
import '@fontsource-variable/geist-mono';
import './styles/tokens.css';
import './styles/base.css';
import './styles/shell.css';
import './styles/parts.css';
import './styles/pages.css';

import { QueryClientProvider } from '@tanstack/react-query';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { live, queryClient } from './api/data';
import { App } from './app';
import { LanguageProvider } from './i18n';
import { askBeforeLeaving } from './lib/draft';
import { aheadWhenIdle } from './lib/later';
import { OverlayProvider } from './ui/overlay';

/** The first page has what it needs by then. */
const AHEAD_AFTER = 3_000;

live.start();

const root = document.getElementById('root');
if (!root) throw new Error('index.html has no element "root"');
createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={queryClient}>
      <LanguageProvider>
        <OverlayProvider>
          <App />
        </OverlayProvider>
      </LanguageProvider>
    </QueryClientProvider>
  </StrictMode>,
);
void aheadWhenIdle(AHEAD_AFTER);
askBeforeLeaving();
