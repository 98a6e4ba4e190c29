// Markdown to elements: parsed by marked, without HTML in it, and whatever comes out of that goes
// through DOMPurify before it is part of the page.

import { Marked } from "../../libraries/marked.esm.js";
import "../../libraries/purify.min.js"; // a script of the older kind: it leaves a global

/** @typedef {import("../../libraries/marked.esm.js").Token} Token */

const purify = /** @type {any} */ (globalThis).DOMPurify;
/** No page of a stranger's is opened by more than a click, and no other program at all. */
const LINKS = /^(?:https?:\/\/|mailto:)/i;

const OPTIONS = {
  ALLOWED_TAGS: [
    "a",
    "blockquote",
    "br",
    "code",
    "del",
    "em",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "hr",
    "li",
    "ol",
    "p",
    "pre",
    "strong",
    "table",
    "tbody",
    "td",
    "th",
    "thead",
    "tr",
    "ul",
  ],
  ALLOWED_ATTR: ["href", "start", "align", "data-language"],
  ALLOW_DATA_ATTR: false,
  ALLOWED_URI_REGEXP: LINKS,
  RETURN_DOM_FRAGMENT: true,
};

const marked = new Marked({
  gfm: true,
  // HTML is text like any other.
  tokenizer: { html: () => undefined, tag: () => undefined },
  renderer: {
    code: ({ text, lang }) =>
      `<pre><code data-language="${escaped(lang ?? "")}">${escaped(text)}</code></pre>`,
    checkbox: ({ checked }) => (checked ? "☑ " : "☐ "),
    // Nothing is fetched from anywhere: a picture is a link to it.
    image: ({ href, text }) => anchor(href, escaped(text || href)),
    link({ href, tokens }) {
      return anchor(href, this.parser.parseInline(tokens));
    },
  },
});

purify.addHook("afterSanitizeAttributes", (/** @type {Element} */ element) => {
  if (element.tagName === "A") {
    element.setAttribute("target", "_blank");
    element.setAttribute("rel", "noopener noreferrer nofollow");
  }
  if (/^(?:P|LI|H[1-6]|TD|TH)$/.test(element.tagName)) element.setAttribute("dir", "auto");
});

/** @param {string} text @returns {Token[]} its blocks, which together are the text */
export function blocksOf(text) {
  return marked.lexer(text);
}

/** @param {Token[]} tokens @returns {DocumentFragment} */
export function elementsOf(tokens) {
  return purify.sanitize(marked.parser(tokens), OPTIONS);
}

/** @param {string} href @param {string} inner markup */
function anchor(href, inner) {
  return LINKS.test(href) ? `<a href="${escaped(href)}">${inner}</a>` : inner;
}

/** @param {string} text */
function escaped(text) {
  return text.replace(/[&<>"]/g, (char) => `&#${char.charCodeAt(0)};`);
}
