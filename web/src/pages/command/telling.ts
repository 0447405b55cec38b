// Commands that are long and nearly the same, so that one sees in what they differ.

const LONGEST = 200;
/** So much of what they share stays where it is cut. */
const HEAD = 40;

function shared(commands: readonly string[]): number {
  const [first = '', ...others] = commands;
  let length = first.length;
  for (const other of others) {
    let i = 0;
    while (i < length && first[i] === other[i]) i += 1;
    length = i;
  }
  return length;
}

/** What is shared is shortened before what differs. */
export function telling(commands: readonly string[]): string[] {
  const same = commands.length > 1 ? shared(commands) : 0;
  return commands.map((command) => {
    if (command.length <= LONGEST) return command;
    // From the beginning of the word in which they begin to differ.
    const from = command.lastIndexOf(' ', same) + 1;
    const begin = Math.min(from, command.length - (LONGEST - HEAD));
    return begin <= HEAD
      ? `${command.slice(0, LONGEST)}…`
      : `${command.slice(0, HEAD)}… ${command.slice(begin, begin + LONGEST - HEAD)}`;
  });
}
