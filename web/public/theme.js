// Before anything is drawn; what is chosen later is lib/theme.ts's to show. A file of its own, and no module: modules
// come after the first picture, and the daemon's policy allows no script in the page itself.
{
  let theme = null;
  try {
    theme = globalThis.localStorage.getItem('berth.theme');
  } catch {
    // Private windows refuse.
  }
  if (theme !== 'light' && theme !== 'dark') {
    const dark = globalThis.matchMedia('(prefers-color-scheme: dark)').matches;
    theme = dark ? 'dark' : 'light';
  }
  globalThis.document.documentElement.dataset.theme = theme;
}
