// Words that were looked for, marked where they stand.

import { h } from "./dom.js";

const SPECIAL = /[.*+?^${}()|[\]\\]/g;

/**
 * @param {string} text
 * @param {string} search
 * @returns {(Node | string)[]}
 */
export function marked(text, search) {
  const words = search.split(/\s+/).filter(Boolean);
  if (!words.length) return [text];
  const escaped = words.map((word) => word.replace(SPECIAL, "\\$&"));
  const parts = text.split(new RegExp(`(${escaped.join("|")})`, "gi"));
  // Of a split with a group, every other part is what the group has found.
  return parts.map((part, index) => (index % 2 ? h("mark", {}, part) : part));
}
