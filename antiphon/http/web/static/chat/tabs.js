// Other tabs of the same browser: what happens in one is told to all.

import { Signal } from "./signal.js";

/**
 * @typedef {{kind: "list"} | {kind: "key"} | {kind: "look"}
 *   | {kind: "thread" | "draft", conversation: string}} News
 */

export class Tabs {
  constructor() {
    /** @type {Signal<[News]>} */
    this.heard = new Signal();
    this.channel = typeof BroadcastChannel === "undefined" ? null : new BroadcastChannel("antiphon");
    if (this.channel) this.channel.onmessage = (event) => this.heard.emit(event.data);
  }

  /** @param {News} news */
  tell(news) {
    this.channel?.postMessage(news);
  }
}
