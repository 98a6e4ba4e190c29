// Text of unknown origin, made fit to be looked at.

/** What is no letter, and would show as nothing or as anything. Tabs and line ends are fine. */
// eslint-disable-next-line no-control-regex
const CONTROLS = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g;
/** Overrides make text look like another text; languages are written without them. */
const OVERRIDES = /[\u202d\u202e]/g;

/** @param {string} text with controls to be seen, and none that turn it around */
export function harmless(text) {
  return text
    .replace(CONTROLS, (char) => {
      const code = char.charCodeAt(0);
      if (code < 0x20) return String.fromCharCode(0x2400 + code);
      return code === 0x7f ? "\u2421" : "\ufffd";
    })
    .replace(OVERRIDES, "\ufffd");
}

/** @param {string} text @returns {"ltr" | "rtl"} as its first letter has it */
export function directionOf(text) {
  const letter = /\p{L}/u.exec(text.slice(0, 500))?.[0] ?? "";
  return /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/.test(letter) ? "rtl" : "ltr";
}

/**
 * Long text in pieces that end where lines do, as far as they can: a browser lays out each by
 * itself.
 *
 * @param {string} text
 * @param {number} size
 * @returns {string[]} without the line ends between them
 */
export function pieces(text, size) {
  const found = [];
  let at = 0;
  while (text.length - at > size) {
    const line = text.lastIndexOf("\n", at + size);
    const space = text.lastIndexOf(" ", at + size);
    const end = line > at ? line : space > at ? space : at + size;
    found.push(text.slice(at, end));
    at = line > at || space > at ? end + 1 : end;
  }
  found.push(text.slice(at));
  return found;
}
