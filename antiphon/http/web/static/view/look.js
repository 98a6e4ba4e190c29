// Light, dark, or as the system has it.

import { kept } from "../chat/storage.js";

const NAME = "look";
export const LOOKS = [
  { name: "system", label: "As the system" },
  { name: "light", label: "Light" },
  { name: "dark", label: "Dark" },
];

/** @returns {string} */
export function look() {
  const name = kept.get(NAME);
  return LOOKS.some((each) => each.name === name) ? name : "system";
}

/** @param {string} name */
export function setLook(name) {
  kept.set(NAME, name);
  applyLook();
}

export function applyLook() {
  document.documentElement.dataset.look = look();
}
