// Who uses the page, with which key and which model.

import { Client } from "../api/client.js";
import { ApiError } from "../api/errors.js";
import { Signal } from "./signal.js";
import { kept, lent } from "./storage.js";

/** @typedef {import("../api/client.js").Json} Json */

const KEY = "key";
const MODEL = "model";

export class Session {
  constructor() {
    this.client = new Client({ key: () => this.key });
    /** @type {Json[]} */
    this.models = [];
    /** @type {Signal<["models" | "key"]>} */
    this.changed = new Signal();
  }

  /** @returns {string | null} */
  get key() {
    return lent.get(KEY) ?? kept.get(KEY);
  }

  get isRemembered() {
    return kept.get(KEY) !== null;
  }

  /** @returns {string} the one that was chosen last, or the first */
  get model() {
    const names = this.models.map((model) => model.id);
    const chosen = kept.get(MODEL);
    return names.includes(chosen) ? chosen : (names[0] ?? "");
  }

  /** Why the chosen model can't be shown pictures; null where it can. */
  get blindness() {
    const { model, models } = this;
    if (models.find((each) => each.id === model)?.vision) return null;
    const seeing = models.filter((each) => each.vision).map((each) => each.id);
    const way = seeing.length ? `Choose ${seeing.join(" or ")}, or remove it.` : "Remove it.";
    return `${model} can't see pictures. ${way}`;
  }

  set model(name) {
    kept.set(MODEL, name);
    this.changed.emit("models");
  }

  /**
   * See whether the server lets us in. Throws Unreachable, and ApiError but for a key that is
   * missing or wrong.
   *
   * @returns {Promise<boolean>}
   */
  async enter() {
    try {
      this.models = (await this.client.models()).data;
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) return false;
      throw error;
    }
    this.changed.emit("models");
    return true;
  }

  /**
   * Use a key, if the server knows it. Throws as `enter`.
   *
   * @param {string} key
   * @param {boolean} remember beyond this tab
   */
  async use(key, remember) {
    this.forget();
    (remember ? kept : lent).set(KEY, key);
    if (await this.enter()) {
      this.changed.emit("key");
      return true;
    }
    this.forget();
    return false;
  }

  forget() {
    kept.remove(KEY);
    lent.remove(KEY);
  }
}
