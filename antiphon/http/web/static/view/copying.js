// Buttons that copy, and say that they have.

import { iconButton } from "./dom.js";
import { icon } from "./icons.js";

const TOLD_MS = 1600;

/**
 * @param {string} label
 * @param {() => string} text
 * @param {SVGElement} face
 */
export function copyButton(label, text, face) {
  const button = iconButton(label, face, async () => {
    const copied = await copy(text());
    button.replaceChildren(icon(copied ? "check" : "close"));
    button.setAttribute("aria-label", copied ? "Copied" : "Copying isn't possible here");
    setTimeout(() => {
      button.replaceChildren(face);
      button.setAttribute("aria-label", label);
    }, TOLD_MS);
  });
  return button;
}

/** @param {string} text @returns {Promise<boolean>} whether it was possible */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyOldWay(text);
  }
}

/** Without a certificate there is no clipboard but this. @param {string} text */
function copyOldWay(text) {
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "visually-hidden";
  (document.querySelector("dialog[open]") ?? document.body).append(area);
  area.select();
  const copied = document.execCommand("copy");
  area.remove();
  return copied;
}
