import react from '@vitejs/plugin-react';
import { defineConfig } from 'vitest/config';

// While working, requests go to the socket of a running daemon: BERTH_SOCKET names it.
const socket = process.env['BERTH_SOCKET'];
const daemon = socket
  ? { target: { socketPath: socket, host: 'berth', port: 80 } as unknown as string }
  : { target: process.env['BERTH_SERVER'] ?? 'http://127.0.0.1:29214' };

export default defineConfig({
  base: '/ui/',
  plugins: [react()],
  build: {
    target: 'es2022',
    // What is inlined is not covered by a content security policy that allows files only.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    sourcemap: false,
    chunkSizeWarningLimit: 700,
  },
  server: {
    proxy: Object.fromEntries(
      ['/api', '/health', '/metrics', '/login'].map((path) => [path, { ...daemon }]),
    ),
  },
  test: {
    environment: 'jsdom',
    include: ['tests/**/*.test.{ts,tsx}'],
    setupFiles: ['tests/setup.ts'],
  },
});
