// How the page looks, who one is here, what one has used, and what is remembered of one.

import { ApiError } from "../api/errors.js";
import { dialog } from "./dialogs.js";
import { fill, h, iconButton } from "./dom.js";
import { icon } from "./icons.js";
import { LOOKS, setLook, look } from "./look.js";

/** @typedef {import("../api/client.js").Json} Json */

const MONTH_S = 30 * 86_400;

/**
 * @param {import("../chat/session.js").Session} session
 * @param {object} desk
 * @param {() => void} desk.changeKey
 */
export function showSettings(session, desk) {
  const usage = h("div", {}, "…");
  const memory = h("div", {}, "…");
  const close = h("button", { type: "submit", class: "button" }, "Close");
  const box = dialog(
    "Settings",
    h("section", {}, h("h3", {}, "Look"), looks()),
    session.key
      ? h(
          "section",
          {},
          h("h3", {}, "Key"),
          keyRow(session, () => box.close(), desk),
        )
      : "",
    h("section", {}, h("h3", {}, "Used in the last 30 days"), usage),
    h("section", {}, h("h3", {}, "Remembered about you"), memory),
    h("form", { method: "dialog", class: "row" }, close),
  );
  box.classList.add("wide");
  box.addEventListener("close", () => box.remove());
  document.body.append(box);
  box.showModal();
  showUsage(session.client, usage);
  showMemory(session.client, memory);
}

function looks() {
  const choices = LOOKS.map(({ name, label }) => {
    const onchange = () => setLook(name);
    const field = h("input", {
      type: "radio",
      name: "look",
      value: name,
      checked: look() === name,
      onchange,
    });
    return h("label", { class: "choice" }, field, h("span", {}, label));
  });
  return h("div", { class: "choices", role: "radiogroup", "aria-label": "Look" }, ...choices);
}

/**
 * @param {import("../chat/session.js").Session} session
 * @param {() => void} close
 * @param {{changeKey: () => void}} desk
 */
function keyRow(session, close, desk) {
  const where = session.isRemembered
    ? "It is remembered in this browser."
    : "It is forgotten with this tab.";
  const onclick = () => {
    close();
    session.forget();
    desk.changeKey();
  };
  return h(
    "p",
    {},
    where,
    " ",
    h("button", { type: "button", class: "link", onclick }, "Use another key"),
  );
}

/** @param {import("../api/client.js").Client} client @param {HTMLElement} place */
async function showUsage(client, place) {
  try {
    const { total, plan } = await client.usage(Math.floor(Date.now() / 1000) - MONTH_S);
    const said = (/** @type {number} */ count) => count.toLocaleString("en");
    const parts = [
      `${said(total.requests)} answers, ${said(total.input_tokens)} tokens read, `,
      `${said(total.output_tokens)} written.`,
      plan ? ` Your plan: ${plan}.` : "",
    ];
    fill(place, h("p", {}, ...parts));
  } catch (error) {
    fill(place, h("p", { class: "hint" }, /** @type {Error} */ (error).message));
  }
}

/** @param {import("../api/client.js").Client} client @param {HTMLElement} place */
async function showMemory(client, place) {
  const again = () => showMemory(client, place);
  try {
    const { data } = await client.memories();
    const rows = data.map((/** @type {Json} */ each) =>
      h(
        "li",
        {},
        h("span", { dir: "auto" }, each.text),
        iconButton("Forget this", icon("close"), () => client.forget(each.id).then(again, again)),
      ),
    );
    const none = h(
      "p",
      { class: "hint" },
      "Nothing yet. What you add here is shown to the model in chats that use memory.",
    );
    fill(place, data.length ? h("ul", { class: "memories" }, rows) : none, adding(client, again));
    if (data.length > 1) {
      const all = () => client.forget().then(again, again);
      place.append(
        h("button", { type: "button", class: "link", onclick: all }, "Forget everything"),
      );
    }
  } catch (error) {
    const isMissing = error instanceof ApiError && error.status === 404;
    const text = isMissing
      ? "This server remembers nothing."
      : /** @type {Error} */ (error).message;
    fill(place, h("p", { class: "hint" }, text));
  }
}

/** @param {import("../api/client.js").Client} client @param {() => void} done */
function adding(client, done) {
  const field = h("input", {
    type: "text",
    class: "field",
    maxLength: 500,
    required: true,
    autocomplete: "off",
    "aria-label": "Something to remember",
    placeholder: "Add something to remember",
  });
  const problem = h("span", { class: "hint", role: "alert" });
  const onsubmit = (/** @type {Event} */ event) => {
    event.preventDefault();
    client
      .remember(field.value.trim())
      .then(done, (error) => (problem.textContent = error.message));
  };
  return h(
    "form",
    { class: "row", onsubmit },
    field,
    h("button", { type: "submit", class: "button small" }, "Add"),
    problem,
  );
}
