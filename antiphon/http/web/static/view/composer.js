// Where people write: text, files, and the button that sends or stops.

import { draftOf, keepDraft } from "../chat/drafts.js";
import { Attachments } from "./attachments.js";
import { h, iconButton } from "./dom.js";
import { icon } from "./icons.js";

/** A draft is kept when its writer pauses. */
const PAUSE_MS = 250;
const LONG_PASTE = 10_000;

export class Composer {
  /**
   * @param {object} desk
   * @param {import("../api/client.js").Client} desk.client
   * @param {(content: import("../api/client.js").Json[]) => void} desk.send
   * @param {() => void} desk.stop
   * @param {() => string | null} desk.blindness why the chosen model can't be shown pictures
   */
  constructor(desk) {
    this.desk = desk;
    /** @type {string | null} */
    this.conversation = null;
    this.isRunning = false;
    this.timer = 0;
    this.attachments = new Attachments(desk.client, () => this.#update(), desk.blindness);
    this.area = h("textarea", {
      id: "message",
      class: "words",
      rows: 1,
      placeholder: "Message Antiphon",
      "aria-label": "Message",
      dir: "auto",
      enterKeyHint: "send",
      oninput: () => this.#typed(),
      onkeydown: this.#key,
      onpaste: this.#pasted,
    });
    const picker = h("input", {
      type: "file",
      multiple: true,
      hidden: true,
      "aria-label": "Files",
    });
    picker.addEventListener("change", () => {
      this.attachments.add([...(picker.files ?? [])]);
      picker.value = "";
    });
    const attach = iconButton("Attach files", icon("attach"), () => picker.click());
    this.button = h("button", { type: "submit", class: "send" }, icon("send"));
    this.extra = h("div", { class: "extra" });
    this.element = h(
      "form",
      { class: "composer", onsubmit: this.#submit, "aria-label": "Write a message" },
      this.attachments.element,
      this.area,
      h("div", { class: "tools" }, attach, picker, this.extra, this.button),
    );
    this.#update();
    addEventListener("pagehide", () => this.#keep());
  }

  /** @param {string} conversation whose draft is to be written on */
  open(conversation) {
    this.#keep();
    this.conversation = conversation;
    this.area.value = draftOf(conversation);
    this.attachments.clear();
    this.#update();
  }

  /** Another tab has written on this draft. */
  reload() {
    const { conversation } = this;
    if (conversation && document.activeElement !== this.area)
      this.area.value = draftOf(conversation);
    this.#update();
  }

  /** The conversation has come to be. @param {string} conversation */
  rename(conversation) {
    if (this.conversation) keepDraft(this.conversation, "");
    this.conversation = conversation;
    this.#keep();
  }

  /** @param {boolean} isRunning whether there is something to stop */
  setRunning(isRunning) {
    this.isRunning = isRunning;
    this.#update();
  }

  focus() {
    this.area.focus();
  }

  /**
   * Something can't be sent for now: it is written down again, unless something else is by now.
   *
   * @param {string} text
   * @param {import("../api/client.js").Json[]} parts of the message, its files among them
   * @returns {boolean} whether it was
   */
  giveBack(text, parts) {
    if (this.area.value || this.attachments.all.length) return false;
    this.area.value = text;
    this.attachments.putBack(parts);
    this.#typed();
    return true;
  }

  /** What was given back is sent after all. @param {string} text */
  takeBack(text) {
    if (this.area.value !== text) return;
    this.area.value = "";
    this.attachments.clear();
    this.#keep();
    this.#update();
  }

  /** @param {Event} event */
  #submit = (event) => {
    event.preventDefault();
    if (this.isRunning) return this.desk.stop();
    if (!this.#canSend) return;
    const text = this.area.value.trim();
    const content = [...this.attachments.parts];
    if (text) content.push({ type: "input_text", text });
    this.area.value = "";
    this.attachments.clear();
    this.desk.send(content);
    this.#keep();
    this.#update();
  };

  /** @param {KeyboardEvent} event */
  #key = (event) => {
    const isPlain = event.key === "Enter" && !event.shiftKey && !event.isComposing;
    // Where there is no Shift to hold, Enter is a new line.
    if (!isPlain || matchMedia("(pointer: coarse)").matches) return;
    event.preventDefault();
    if (!this.isRunning) this.element.requestSubmit();
  };

  /** @param {ClipboardEvent} event */
  #pasted = (event) => {
    const files = [...(event.clipboardData?.files ?? [])];
    const text = event.clipboardData?.getData("text/plain") ?? "";
    if (files.length === 0 && text.length < LONG_PASTE) return;
    event.preventDefault();
    if (files.length) return this.attachments.add(files);
    // Browsers take seconds over it, line by line, so that it could be undone by steps.
    this.area.setRangeText(text, this.area.selectionStart, this.area.selectionEnd, "end");
    this.#typed();
  };

  #typed() {
    this.#update();
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.#keep(), PAUSE_MS);
  }

  #keep() {
    clearTimeout(this.timer);
    const { conversation } = this;
    const text = this.area.value;
    if (conversation === null || draftOf(conversation) === text) return;
    keepDraft(conversation, text);
  }

  get #canSend() {
    const hasText = this.area.value.trim() !== "";
    return this.attachments.isReady && (hasText || this.attachments.parts.length > 0);
  }

  #update() {
    const label = this.isRunning ? "Stop answering" : "Send message";
    if (this.button.getAttribute("aria-label") !== label) {
      this.button.setAttribute("aria-label", label);
      this.button.title = this.isRunning ? "Stop answering (Escape)" : "Send message (Enter)";
      this.button.replaceChildren(icon(this.isRunning ? "stop" : "send"));
    }
    this.button.classList.toggle("stop", this.isRunning);
    this.button.disabled = !this.isRunning && !this.#canSend;
  }
}
