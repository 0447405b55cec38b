import { describe, expect, it } from 'vitest';
import { fetched } from '../src/lib/later';

describe('a part of the console', () => {
  const gone = new TypeError('Failed to fetch dynamically imported module');

  it('is asked for again when the daemon is back', async () => {
    let up = false;
    let asked = 0;
    const load = () => {
      asked += 1;
      return up ? Promise.resolve('page') : Promise.reject(gone);
    };
    const back = () => {
      up = true;
      return Promise.resolve();
    };
    expect(await fetched(load, () => Promise.resolve(up), back)).toBe('page');
    expect(asked).toBe(2);
  });

  it('is given up where the daemon answers and does not have it', async () => {
    const never = () => Promise.reject<void>(new Error('nobody went away'));
    await expect(
      fetched(
        () => Promise.reject<string>(gone),
        () => Promise.resolve(true),
        never,
      ),
    ).rejects.toBe(gone);
  });
});
