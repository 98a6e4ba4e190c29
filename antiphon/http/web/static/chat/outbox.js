// What was sent and hasn't ended. It is written down before it leaves, under the key that makes it
// one: a page that is closed, or crashes, or loses its server sends it again, and it is there once.

import { kept } from "./storage.js";

/** @typedef {import("../api/client.js").Json} Json */
/**
 * @typedef {object} Sent
 * @property {string} key
 * @property {string} conversation
 * @property {Json} body of the request for an answer
 * @property {number} at when it was first sent, as `Date.now()` counts
 */

const PREFIX = "sent.";
/** Older ones are nobody's hope any more; the server forgets its keys sooner or later, too. */
const LONGEST_MS = 24 * 3600 * 1000;

/** @param {Sent} sent */
export function note(sent) {
  kept.set(PREFIX + sent.key, sent);
}

/** @param {string} key */
export function settle(key) {
  kept.remove(PREFIX + key);
}

/**
 * What was sent in a conversation and isn't known to have arrived.
 *
 * @param {string} conversation
 * @returns {Sent[]} the oldest first
 */
export function pending(conversation) {
  /** @type {Sent[]} */
  const found = [];
  for (const name of kept.names(PREFIX)) {
    const sent = /** @type {Sent | null} */ (kept.get(name));
    if (!sent || Date.now() - sent.at > LONGEST_MS) kept.remove(name);
    else if (sent.conversation === conversation) found.push(sent);
  }
  return found.sort((one, other) => one.at - other.at);
}

/** A new key: nobody has used it. */
export function newKey() {
  // `crypto.randomUUID` is for secure contexts only, and a server at home has no certificate.
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) =>
    byte.toString(16).padStart(2, "0"),
  ).join("");
}
