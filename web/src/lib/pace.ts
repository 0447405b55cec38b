// News come one by one or by the thousand: the first is acted on at once, the rest together.

/** How long the first piece of news waits for others that belong to it. */
const SOON = 30;

export interface Pace {
  (): void;
  cancel: () => void;
}

/** Calls `work` soon after it was asked for, and not again within `every` milliseconds. */
export function paced(work: () => void, every: number): Pace {
  let timer: ReturnType<typeof setTimeout> | null = null;
  let last = -Infinity;
  const ask = () => {
    timer ??= setTimeout(
      () => {
        timer = null;
        last = Date.now();
        work();
      },
      Math.max(SOON, last + every - Date.now()),
    );
  };
  return Object.assign(ask, {
    cancel: () => {
      if (timer) clearTimeout(timer);
      timer = null;
    },
  });
}
