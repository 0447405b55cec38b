/** Names a submission, so that repeating it is safe. Works without a secure context, too. */
export function newKey(): string {
  const random = crypto.getRandomValues(new Uint8Array(16));
  return `console-${Array.from(random, (byte) => byte.toString(16).padStart(2, '0')).join('')}`;
}
