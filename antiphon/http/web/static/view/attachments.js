// Files that go with the next message: on their way, being read, ready, or not, and then why.

import { ApiError } from "../api/errors.js";
import { sizeOf } from "../chat/units.js";
import { fill, h, iconButton } from "./dom.js";
import { icon } from "./icons.js";

/** @typedef {import("../api/client.js").Json} Json */
/**
 * @typedef {object} Attachment
 * @property {File} file
 * @property {"uploading" | "reading" | "ready" | "failed"} state
 * @property {number} share
 * @property {string | null} id
 * @property {string} reason why it failed
 * @property {AbortController} leaving
 */

const LOOK_MS = 700;
/** Statuses of a file of which more is to come. */
const UNDER_WAY = new Set(["uploaded", "pending", "reading", "in_progress"]);

export class Attachments {
  /** @param {import("../api/client.js").Client} client @param {() => void} changed */
  constructor(client, changed) {
    this.client = client;
    this.changed = changed;
    /** @type {Attachment[]} */
    this.all = [];
    this.element = h("ul", { class: "files", hidden: true, "aria-label": "Attached files" });
  }

  /** Whether nothing is under way, and nothing has failed. */
  get isReady() {
    return this.all.every((each) => each.state === "ready");
  }

  /** @returns {Json[]} parts of a message */
  get parts() {
    return this.all.map((each) => ({ type: "input_file", file_id: each.id }));
  }

  /** @param {File[]} files */
  add(files) {
    for (const file of files) {
      /** @type {Attachment} */
      const added = {
        file,
        state: "uploading",
        share: 0,
        id: null,
        reason: "",
        leaving: new AbortController(),
      };
      this.all.push(added);
      this.#bring(added);
    }
    this.#draw();
  }

  /** They belong to a message now. */
  clear() {
    this.all = [];
    this.#draw();
  }

  /** @param {Attachment} each */
  async #bring(each) {
    const { signal } = each.leaving;
    try {
      const progress = (/** @type {number} */ share) => {
        each.share = share;
        this.#draw();
      };
      let file = await this.client.upload(each.file, { signal, progress });
      each.id = file.id;
      each.state = "reading";
      this.#draw();
      while (UNDER_WAY.has(file.status) && !signal.aborted) {
        await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
        file = await this.client.file(file.id);
      }
      each.state = file.status === "error" ? "failed" : "ready";
      each.reason = file.status_details ?? "It can't be read.";
    } catch (error) {
      if (signal.aborted) return;
      each.state = "failed";
      each.reason = error instanceof ApiError ? error.message : "The connection was lost.";
    }
    this.#draw();
  }

  /** @param {Attachment} each */
  #remove(each) {
    each.leaving.abort();
    this.all = this.all.filter((other) => other !== each);
    if (each.id) this.client.deleteFile(each.id).catch(() => {}); // it would only be unused
    this.#draw();
  }

  #draw() {
    this.element.hidden = this.all.length === 0;
    fill(this.element, ...this.all.map((each) => this.#chip(each)));
    this.changed();
  }

  /** @param {Attachment} each */
  #chip(each) {
    const failed = each.state === "failed";
    return h(
      "li",
      { class: `file-chip ${each.state}` },
      icon("file"),
      h(
        "span",
        { class: "file-name" },
        h("bdi", {}, each.file.name),
        h("small", { role: failed ? "alert" : null }, stateOf(each)),
      ),
      iconButton(`Remove ${each.file.name}`, icon("close"), () => this.#remove(each)),
    );
  }
}

/** @param {Attachment} each */
function stateOf(each) {
  switch (each.state) {
    case "uploading":
      return `Uploading, ${Math.round(each.share * 100)} %`;
    case "reading":
      return "Being read…";
    case "ready":
      return sizeOf(each.file.size);
    default:
      return each.reason;
  }
}
