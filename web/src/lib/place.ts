// Where one has been, so that the way back leads there: the address with its filter, and the place in the list.

let last = '/state';

/** Told of every address; a job is where one comes from to go back, not to. */
export function visited(path: string, search: string): void {
  if (/^\/state\/./.test(path)) return;
  last = search ? `${path}?${search}` : path;
}

export const cameFrom = (): string => last;

export interface Spot {
  offset: number;
  cursor: number | null;
}

const spots = new Map<string, Spot>();

export const spotOf = (list: string): Spot => spots.get(list) ?? { offset: 0, cursor: null };
export const leaveSpot = (list: string, spot: Spot): void => void spots.set(list, spot);
