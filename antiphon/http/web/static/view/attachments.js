// Files that go with the next message: on their way, being read, ready, or not, and then why.

import { ApiError } from "../api/errors.js";
import { sizeOf } from "../chat/units.js";
import { isUnread, toldOf } from "../chat/reading.js";
import { fill, h, iconButton } from "./dom.js";
import { icon } from "./icons.js";

/** @typedef {import("../api/client.js").Json} Json */
/**
 * @typedef {object} Attachment
 * @property {string} name
 * @property {number} size
 * @property {boolean} isPicture
 * @property {"uploading" | "reading" | "ready" | "failed"} state
 * @property {number} share of it that has gone
 * @property {Json | null} known the file as the server has it
 * @property {string} reason why it failed
 * @property {AbortController} leaving
 */

const LOOK_MS = 700;
/** What models are shown as pictures; all else is read. */
const PICTURES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

export class Attachments {
  /**
   * @param {import("../api/client.js").Client} client
   * @param {() => void} changed
   * @param {() => string | null} blindness why the chosen model can't be shown pictures
   */
  constructor(client, changed, blindness) {
    this.client = client;
    this.changed = changed;
    this.blindness = blindness;
    /** @type {Attachment[]} */
    this.all = [];
    this.element = h("ul", { class: "files", hidden: true, "aria-label": "Attached files" });
  }

  /** Whether the server has all of them: an answer waits a while for what is still being read. */
  get isReady() {
    return this.all.every((each) => each.known !== null && !this.#refusal(each));
  }

  /** @returns {Json[]} parts of a message */
  get parts() {
    return this.all.map((each) => ({
      type: each.isPicture ? "input_image" : "input_file",
      file_id: each.known?.id,
    }));
  }

  /** @param {File[]} files */
  add(files) {
    for (const file of files) {
      const { name, size, type } = file;
      const added = attachment({ name, size, isPicture: PICTURES.has(type) });
      this.all.push(added);
      this.#bring(added, file);
    }
    this.#draw();
  }

  /**
   * Those of a message that came to nothing: the server has them.
   *
   * @param {Json[]} parts of that message
   */
  putBack(parts) {
    for (const { type, file_id } of parts) {
      if (!file_id) continue;
      const back = attachment({ name: "File", size: 0, isPicture: type === "input_image" });
      back.state = "reading";
      this.all.push(back);
      this.#find(back, file_id);
    }
    this.#draw();
  }

  /** They belong to a message now. */
  clear() {
    for (const each of this.all) each.leaving.abort();
    this.all = [];
    this.#draw();
  }

  /** @param {Attachment} each @param {File} file */
  async #bring(each, file) {
    const { signal } = each.leaving;
    try {
      const progress = (/** @type {number} */ share) => {
        each.share = share;
        this.#draw();
      };
      const purpose = each.isPicture ? "vision" : "user_data";
      each.known = await this.client.upload(file, { purpose, signal, progress });
    } catch (error) {
      return this.#fail(each, error);
    }
    await this.#read(each);
  }

  /** @param {Attachment} each @param {string} id */
  async #find(each, id) {
    try {
      const known = await this.client.file(id);
      Object.assign(each, { known, name: known.filename, size: known.bytes });
    } catch (error) {
      return this.#fail(each, error);
    }
    await this.#read(each);
  }

  /** @param {Attachment} each @param {unknown} error */
  #fail(each, error) {
    if (each.leaving.signal.aborted) return;
    each.state = "failed";
    each.reason = error instanceof ApiError ? error.message : "The connection was lost.";
    this.#draw();
  }

  /** See how it is read, until it is. @param {Attachment} each */
  async #read(each) {
    const { signal } = each.leaving;
    while (isUnread(each.known) && !signal.aborted) {
      each.state = "reading";
      this.#draw();
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
      // Out of reach: there will be another look.
      each.known = await this.client.file(each.known?.id).catch(() => each.known);
    }
    each.state = "ready";
    if (!signal.aborted) this.#draw();
  }

  /** @param {Attachment} each */
  #remove(each) {
    each.leaving.abort();
    this.all = this.all.filter((other) => other !== each);
    const id = each.known?.id;
    if (id) this.client.deleteFile(id).catch(() => {}); // it would only be unused
    this.#draw();
  }

  /** Another model may see what this one doesn't. */
  look() {
    if (this.all.some((each) => each.isPicture)) this.#draw();
  }

  /** @param {Attachment} each @returns {string | null} */
  #refusal(each) {
    return each.isPicture ? this.blindness() : null;
  }

  #draw() {
    this.element.hidden = this.all.length === 0;
    fill(this.element, ...this.all.map((each) => this.#chip(each)));
    this.changed();
  }

  /** @param {Attachment} each */
  #chip(each) {
    const refusal = this.#refusal(each);
    const failed = each.state === "failed" || refusal !== null;
    const told = each.state === "ready" ? toldOf(each.known) : [];
    return h(
      "li",
      { class: `file-chip ${failed ? "failed" : each.state}` },
      icon("file"),
      h(
        "span",
        { class: "file-name" },
        h("bdi", {}, each.name),
        h("small", { role: failed ? "alert" : null }, refusal ?? stateOf(each)),
        told.map((sentence) => h("small", { class: "told" }, sentence)),
      ),
      iconButton(`Remove ${each.name}`, icon("close"), () => this.#remove(each)),
    );
  }
}

/** @param {Pick<Attachment, "name" | "size" | "isPicture">} file @returns {Attachment} */
function attachment(file) {
  const leaving = new AbortController();
  return { ...file, state: "uploading", share: 0, known: null, reason: "", leaving };
}

/** @param {Attachment} each */
function stateOf(each) {
  switch (each.state) {
    case "uploading":
      return `Uploading, ${Math.round(each.share * 100)} %`;
    case "reading":
      return `Being read, ${Math.round((each.known?.reading.progress ?? 0) * 100)} %`;
    case "ready":
      return sizeOf(each.size);
    default:
      return each.reason;
  }
}
