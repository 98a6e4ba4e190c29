// The list of conversations, and what is done with one as a whole. What belongs together as
// versions is one entry.

import { ApiError } from "../api/errors.js";
import { Signal } from "./signal.js";
import { kept } from "./storage.js";
import { newestOfEach, rootOf } from "./versions.js";

/** @typedef {import("../api/client.js").Client} Client */
/** @typedef {import("../api/client.js").Json} Json */

const PREFIX = "deleted.";
/** How long a deletion can be taken back. */
export const UNDO_MS = 8000;

export class Library {
  /** @param {Client} client */
  constructor(client) {
    this.client = client;
    this.search = "";
    this.archived = false;
    this.hasMore = false;
    this.isLoaded = false;
    /** @type {Error | null} why the list can't be shown as it is now */
    this.error = null;
    /** @type {Signal<[]>} */
    this.changed = new Signal();
    /** @type {Json[]} */
    this.found = [];
    /** @type {Map<string, string>} what to call those that have no title yet, by root */
    this.callNames = new Map();
    this.after = "";
    this.asked = 0;
    /** @type {Set<string>} what was deleted here: other tabs see to their own */
    this.deletedHere = new Set();
    addEventListener("pagehide", () => this.#bury({ keepalive: true }));
  }

  /** @returns {Json[]} */
  get entries() {
    const deleted = new Set(kept.names(PREFIX).map((name) => name.slice(PREFIX.length)));
    return newestOfEach(this.found).filter((each) => !deleted.has(rootOf(each)));
  }

  /** @param {Json} entry @returns {string} */
  titleOf(entry) {
    return entry.title || this.callNames.get(rootOf(entry)) || "New chat";
  }

  /** Ask for the list anew. */
  async refresh() {
    const asked = ++this.asked;
    const { search, archived } = this;
    try {
      const page = await this.client.conversations({ search, archived });
      if (asked !== this.asked) return; // somebody has typed on
      this.#take(page, []);
      this.error = null;
    } catch (error) {
      if (asked !== this.asked) return;
      this.error = /** @type {Error} */ (error);
    }
    this.changed.emit();
  }

  /** The next page of it. */
  async more() {
    if (!this.hasMore) return;
    const { search, archived, after } = this;
    this.hasMore = false;
    try {
      this.#take(await this.client.conversations({ search, archived, after }), this.found);
    } catch (error) {
      this.hasMore = true;
      this.error = /** @type {Error} */ (error);
    }
    this.changed.emit();
  }

  /** @param {Json} entry @param {string} title an empty one is none */
  async rename(entry, title) {
    await this.#each(entry, (id) => this.client.updateConversation(id, { title: title || null }));
  }

  /** @param {Json} entry @param {boolean} archived */
  async archive(entry, archived) {
    await this.#each(entry, (id) => this.client.updateConversation(id, { archived }));
  }

  /**
   * Whether the model is told in it what is remembered.
   *
   * @param {Json} entry
   * @param {boolean} memory
   */
  async useMemory(entry, memory) {
    await this.#each(entry, (id) => this.client.updateConversation(id, { memory }));
  }

  /** Hide it, and delete it when nobody takes that back in time. @param {Json} entry */
  remove(entry) {
    const root = rootOf(entry);
    this.deletedHere.add(PREFIX + root);
    kept.set(PREFIX + root, { ids: [entry.id], due: Date.now() + UNDO_MS });
    this.changed.emit();
    this.family(entry).then(
      (all) => {
        const noted = kept.get(PREFIX + root);
        if (noted) kept.set(PREFIX + root, { ...noted, ids: all.map((each) => each.id) });
      },
      () => {}, // the one that was meant goes in any case
    );
    setTimeout(() => this.#bury(), UNDO_MS + 50);
  }

  /** @param {Json} entry */
  restore(entry) {
    kept.remove(PREFIX + rootOf(entry));
    this.changed.emit();
  }

  /** Delete what a page that is gone had still to delete. */
  tidy() {
    this.#bury();
    setTimeout(() => this.#bury(), UNDO_MS + 50);
  }

  /**
   * All versions of a conversation, itself among them.
   *
   * @param {Json} conversation
   * @returns {Promise<Json[]>}
   */
  async family(conversation) {
    const root = rootOf(conversation);
    if (!conversation.metadata?.branch_root) return [conversation];
    /** @type {Map<string, Json>} */
    const found = new Map([[conversation.id, conversation]]);
    for (const archived of [false, true]) {
      for (let after = "", more = true; more;) {
        const page = await this.client.conversations({ archived, after, limit: 100 });
        for (const each of page.data) if (rootOf(each) === root) found.set(each.id, each);
        after = page.last_id;
        more = page.has_more;
      }
    }
    return [...found.values()];
  }

  /** @param {import("../api/client.js").List} page @param {Json[]} before */
  #take(page, before) {
    const known = new Set(page.data.map((each) => each.id));
    this.found = [...before.filter((each) => !known.has(each.id)), ...page.data];
    this.hasMore = page.has_more;
    this.after = page.last_id;
    this.isLoaded = true;
  }

  /** @param {Json} entry @param {(id: string) => Promise<any>} work */
  async #each(entry, work) {
    const family = await this.family(entry);
    await Promise.all(family.map((each) => work(each.id)));
    await this.refresh();
  }

  /** Delete what is due; with `keepalive`, the page goes, and so does what waits. */
  async #bury({ keepalive = false } = {}) {
    for (const name of kept.names(PREFIX)) {
      const noted = kept.get(name);
      const isDue = noted && (noted.due <= Date.now() || (keepalive && this.deletedHere.has(name)));
      if (!isDue) continue;
      const results = noted.ids.map((/** @type {string} */ id) =>
        this.client.deleteConversation(id, { keepalive }).catch((error) => {
          // What is gone already is what was wanted.
          if (!(error instanceof ApiError && error.status === 404)) throw error;
        }),
      );
      const settled = await Promise.allSettled(results);
      // What failed is tried again by the next page that is opened.
      if (settled.every((each) => each.status === "fulfilled")) {
        this.found = this.found.filter((each) => !noted.ids.includes(each.id));
        kept.remove(name);
      }
    }
  }
}
