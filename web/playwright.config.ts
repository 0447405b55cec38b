import { defineConfig } from '@playwright/test';

// A real daemon with simulated GPUs for every worker; see e2e/berth.ts.
export default defineConfig({
  testDir: 'e2e',
  outputDir: 'test-results',
  // The machine may be slow and busy; waiting is for conditions, and ends when they hold.
  timeout: 240_000,
  expect: { timeout: 60_000 },
  workers: process.env['BERTH_JOBS'] === '1' ? 1 : 2,
  fullyParallel: true,
  forbidOnly: true,
  // What only a busy machine has broken is tried once more, and told as flaky.
  retries: 1,
  reporter: 'line',
  use: {
    viewport: { width: 1440, height: 900 },
    actionTimeout: 60_000,
    navigationTimeout: 60_000,
    trace: 'retain-on-failure',
    launchOptions: {
      executablePath: process.env['BERTH_CHROMIUM'] ?? '/usr/bin/chromium',
      args: [
        '--no-sandbox',
        '--disable-gpu',
        '--disable-background-networking',
        '--disable-component-update',
        '--disable-sync',
      ],
    },
  },
});
