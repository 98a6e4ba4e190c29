// The files that an answer refers to.

import { h } from "./dom.js";
import { icon } from "./icons.js";
import { GONE } from "./question.js";

/** @typedef {import("../api/client.js").Json} Json */

/** @param {Json[]} items @param {import("./question.js").FileOf} fileOf */
export function sourcesOf(items, fileOf) {
  const parts = items.flatMap((item) => item.content ?? []);
  const cited = parts.flatMap((part) => part.annotations ?? []);
  /** @type {Map<string, string | undefined>} */
  const files = new Map();
  for (const each of cited)
    if (each.type === "file_citation") files.set(each.file_id, each.filename);
  if (files.size === 0) return [];
  const chips = [...files].map(([id, filename]) => {
    const name = h("bdi", {}, filename ?? "File");
    if (!filename) fileOf(id).then((file) => (name.textContent = file?.filename ?? GONE));
    return h("li", { class: "file-chip" }, icon("file"), name);
  });
  return [h("span", {}, "Sources"), h("ul", { class: "files" }, chips)];
}
