// What somebody has begun to write, one for each conversation, until it is sent.

import { kept } from "./storage.js";

const PREFIX = "draft.";
const MOST = 200;

/** @param {string} conversation @returns {string} */
export function draftOf(conversation) {
  return kept.get(PREFIX + conversation)?.text ?? "";
}

/** @param {string} conversation @param {string} text */
export function keepDraft(conversation, text) {
  kept.set(PREFIX + conversation, text ? { text, at: Date.now() } : null);
  const names = kept.names(PREFIX);
  if (names.length <= MOST) return;
  const oldest = names.sort((one, other) => (kept.get(one)?.at ?? 0) - (kept.get(other)?.at ?? 0));
  kept.remove(oldest[0]);
}
