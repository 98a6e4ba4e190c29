// The beginning: the page's frame, and then whatever the server lets us have.

import { App } from "./app.js";
import { Session } from "./chat/session.js";
import { Tabs } from "./chat/tabs.js";
import { copy } from "./view/copying.js";
import { askForKey, showKeys } from "./view/dialogs.js";
import { h, iconButton } from "./view/dom.js";
import { icon } from "./view/icons.js";
import { applyLook } from "./view/look.js";
import { ModelChoice } from "./view/model-choice.js";
import { listenForKeys } from "./view/shortcuts.js";

applyLook();
const session = new Session();
const tabs = new Tabs();
const app = new App(session, tabs);
const models = new ModelChoice(session);

/** On a narrow screen the list lies over the page; on a wide one it stands beside it. */
const narrow = matchMedia("(max-width: 820px)");

function toggleList() {
  const { dataset } = document.body;
  if (narrow.matches) dataset.list = dataset.list === "open" ? "closed" : "open";
  else dataset.side = dataset.side === "hidden" ? "shown" : "hidden";
  settleList();
}

/** What can't be seen can't be reached by the keyboard either. */
function settleList() {
  const { list, side } = document.body.dataset;
  const isShown = narrow.matches ? list === "open" : side !== "hidden";
  app.sidebar.element.inert = !isShown;
  toggle.setAttribute("aria-expanded", String(isShown));
  if (narrow.matches && isShown) app.sidebar.search.focus();
}

const toggle = iconButton("Conversations", icon("menu"), toggleList, {
  "aria-controls": "sidebar",
});
const scrim = h("div", { class: "scrim", onclick: toggleList });
const begin = iconButton("New chat", icon("plus"), () => app.begin());
app.composer.extra.append(models.element);
document.body.append(
  h("a", { class: "skip", href: "#message", onclick: skip }, "To the message field"),
  app.sidebar.element,
  scrim,
  h(
    "main",
    {},
    h("header", { class: "top" }, toggle, app.heading, begin),
    app.banner.element,
    app.view.element,
    h(
      "div",
      { class: "dock" },
      app.view.toEnd,
      app.composer.element,
      h("p", { class: "small-print" }, "A model wrote the answers. It can be wrong."),
    ),
  ),
  app.toasts.element,
  app.announcer.element,
);
narrow.addEventListener("change", settleList);
new MutationObserver(settleList).observe(document.body, { attributeFilter: ["data-list"] });
settleList();

/** @param {Event} event */
function skip(event) {
  event.preventDefault();
  app.composer.focus();
}

listenForKeys({
  stop: () => {
    if (narrow.matches && document.body.dataset.list === "open") toggleList();
    else app.stop();
  },
  begin: () => app.begin(),
  search: () => {
    if (app.sidebar.element.inert) toggleList();
    app.sidebar.search.focus();
  },
  list: toggleList,
  write: () => app.composer.focus(),
  copy: () => copy(app.lastAnswer),
  keys: showKeys,
});
tabs.heard.on((news) => news.kind === "look" && applyLook());

addEventListener("dragover", (event) => {
  if (!event.dataTransfer?.types.includes("Files")) return;
  event.preventDefault();
  document.body.classList.add("dropping");
});
addEventListener("dragleave", (event) => {
  if (event.relatedTarget === null) document.body.classList.remove("dropping");
});
addEventListener("drop", (event) => {
  document.body.classList.remove("dropping");
  const files = [...(event.dataTransfer?.files ?? [])];
  if (files.length === 0) return;
  event.preventDefault();
  app.composer.attachments.add(files);
});

async function enter() {
  try {
    if (!(await session.enter())) await askForKey(session);
  } catch (error) {
    if (await app.banner.await(error)) return enter();
    return app.failed(error);
  }
  await app.start();
  app.composer.focus();
}

enter().finally(() => {
  performance.mark("ready");
  document.documentElement.dataset.ready = "true";
});
