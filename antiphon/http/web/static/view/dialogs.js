// Dialogs: the key that the server wants, and the keys of the keyboard.

import { fill, h } from "./dom.js";

/** @param {string} title @param {...(Node | string)} children */
export function dialog(title, ...children) {
  const heading = h("h2", { id: `dialog-${title.toLowerCase().replaceAll(" ", "-")}` }, title);
  return h("dialog", { class: "dialog", "aria-labelledby": heading.id }, heading, ...children);
}

/**
 * Ask for a key until the server takes one.
 *
 * @param {import("../chat/session.js").Session} session
 * @returns {Promise<void>}
 */
export function askForKey(session) {
  return new Promise((resolve) => {
    const field = h("input", {
      type: "password",
      class: "field",
      required: true,
      autocomplete: "off",
      spellcheck: false,
      "aria-label": "API key",
      placeholder: "sk-…",
    });
    const remember = h("input", { type: "checkbox", checked: session.isRemembered });
    const problem = h("p", { class: "notice error", role: "alert", hidden: true });
    const submit = async (/** @type {Event} */ event) => {
      event.preventDefault();
      problem.hidden = true;
      try {
        if (await session.use(field.value.trim(), remember.checked)) {
          box.close();
          box.remove();
          return resolve();
        }
        fill(problem, "The server doesn't know this key.");
      } catch (error) {
        fill(problem, /** @type {Error} */ (error).message);
      }
      problem.hidden = false;
      field.select();
    };
    const form = h(
      "form",
      { onsubmit: submit },
      h(
        "p",
        {},
        "This server answers people with a key. Whoever runs it makes one with ",
        h("code", {}, "antiphon keys create"),
        ".",
      ),
      field,
      h("label", { class: "check" }, remember, "Remember it in this browser"),
      h(
        "p",
        { class: "hint" },
        "Otherwise it is forgotten with this tab. It is sent to this server and nowhere else.",
      ),
      problem,
      h("div", { class: "row" }, h("button", { type: "submit", class: "button" }, "Continue")),
    );
    const box = dialog("Your key", form);
    box.addEventListener("cancel", (event) => event.preventDefault());
    document.body.append(box);
    box.showModal();
    field.focus();
  });
}

const KEYS = [
  ["Enter", "Send"],
  ["Shift + Enter", "New line"],
  ["Escape", "Stop answering"],
  ["Ctrl + Shift + O", "New chat"],
  ["Ctrl + K", "Search conversations"],
  ["Ctrl + Shift + S", "Show or hide the list"],
  ["Shift + Escape", "To the message field"],
  ["Ctrl + Shift + C", "Copy the last answer"],
  ["?", "This list"],
];

export function showKeys() {
  const close = h("button", { type: "submit", class: "button" }, "Close");
  const rows = KEYS.flatMap(([keys, what]) => [h("dt", {}, h("kbd", {}, keys)), h("dd", {}, what)]);
  const box = dialog(
    "Keyboard",
    h("dl", { class: "keys" }, ...rows),
    h("form", { method: "dialog", class: "row" }, close),
  );
  box.addEventListener("close", () => box.remove());
  document.body.append(box);
  box.showModal();
}
