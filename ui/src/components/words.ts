/** Texts of the server, which begin with a small letter where the terminal has a word of its own before them. */

/** With a capital letter, unless it begins with code. */
export function sentence(text: string): string {
  return /^[a-z]+[ ,]/.test(text) ? text.charAt(0).toUpperCase() + text.slice(1) : text;
}

/** Without the full stop at its end, for texts that go on. */
export function unstopped(text: string): string {
  return text.replace(/[.。]$/, '');
}
