// Other tabs of the same browser: what happens in one is known in all. What the browser keeps tells
// of itself, and not before all tabs see it; the rest is said aloud.

import { Signal } from "./signal.js";

/**
 * @typedef {{kind: "list" | "key" | "look"} | {kind: "thread" | "draft", conversation: string}} News
 */

const KEPT = "antiphon.";

export class Tabs {
  constructor() {
    /** @type {Signal<[News]>} */
    this.heard = new Signal();
    const hasChannel = typeof BroadcastChannel !== "undefined";
    this.channel = hasChannel ? new BroadcastChannel("antiphon") : null;
    if (this.channel) this.channel.onmessage = (event) => this.heard.emit(event.data);
    addEventListener("storage", ({ key }) => {
      const news = key?.startsWith(KEPT) ? newsOf(key.slice(KEPT.length)) : null;
      if (news) this.heard.emit(news);
    });
  }

  /** @param {News} news */
  tell(news) {
    this.channel?.postMessage(news);
  }
}

/**
 * @param {string} name of what was kept, or is kept no longer
 * @returns {News | null}
 */
function newsOf(name) {
  if (name === "look" || name === "key") return { kind: name };
  if (name.startsWith("deleted.")) return { kind: "list" };
  if (name.startsWith("draft.")) {
    return { kind: "draft", conversation: name.slice("draft.".length) };
  }
  return null;
}
