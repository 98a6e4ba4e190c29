// Colours for code, in the languages that people ask for. Each is fetched from this server when
// there is code in it; until then, and in all others, code is plain.

import hljs from "../../libraries/highlight/core.min.js";
import "../../libraries/purify.min.js";

const purify = /** @type {any} */ (globalThis).DOMPurify;
const LANGUAGES = new Set(
  (
    "bash c cpp csharp css diff dockerfile go ini java javascript json kotlin markdown php python " +
    "ruby rust shell sql swift typescript xml yaml"
  ).split(" "),
);
/** @type {Record<string, string>} */
const ALSO = {
  "c++": "cpp",
  "c#": "csharp",
  cs: "csharp",
  console: "shell",
  docker: "dockerfile",
  golang: "go",
  h: "c",
  hpp: "cpp",
  html: "xml",
  js: "javascript",
  jsx: "javascript",
  kt: "kotlin",
  md: "markdown",
  mjs: "javascript",
  patch: "diff",
  py: "python",
  py3: "python",
  python3: "python",
  rb: "ruby",
  rs: "rust",
  sh: "bash",
  svg: "xml",
  toml: "ini",
  ts: "typescript",
  tsx: "typescript",
  yml: "yaml",
  zsh: "bash",
};
/** Longer code stays plain: colours must not cost anybody a frame. */
const LONGEST = 20_000;

/** @type {Map<string, Promise<boolean>>} */
const loaded = new Map();

/**
 * Colour an element's text.
 *
 * @param {HTMLElement} code
 * @param {string} name of the language, as it was written
 */
export async function highlight(code, name) {
  const text = code.textContent ?? "";
  const language = ALSO[name.toLowerCase()] ?? name.toLowerCase();
  if (!LANGUAGES.has(language) || text.length > LONGEST || !(await load(language))) return;
  await idle();
  if (!code.isConnected || code.textContent !== text) return;
  const { value } = hljs.highlight(text, { language, ignoreIllegals: true });
  const options = { ALLOWED_TAGS: ["span"], ALLOWED_ATTR: ["class"], RETURN_DOM_FRAGMENT: true };
  code.replaceChildren(purify.sanitize(value, options));
}

/** @param {string} language */
function load(language) {
  const known = loaded.get(language);
  if (known) return known;
  const coming = import(`../../libraries/highlight/languages/${language}.min.js`).then(
    (module) => {
      hljs.registerLanguage(language, module.default);
      return true;
    },
    () => false,
  );
  loaded.set(language, coming);
  return coming;
}

/** @returns {Promise<void>} when the page has nothing better to do */
function idle() {
  return new Promise((resolve) => {
    if (typeof requestIdleCallback === "function") {
      requestIdleCallback(() => resolve(), { timeout: 500 });
    } else setTimeout(resolve, 50);
  });
}
