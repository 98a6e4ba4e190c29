// Elements, made in one expression. Text is only ever text: nothing here takes markup.

/** @typedef {Node | string | null | false | undefined} Child */

/**
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Record<string, any>} [props] `class`, `on…` listeners, properties, and attributes
 * @param {...(Child | Child[])} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.className = value;
    else if (name in element && !name.startsWith("aria")) Reflect.set(element, name, value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  append(element, children);
  return element;
}

/** @param {Element} element @param {(Child | Child[])[]} children */
export function append(element, children) {
  for (const child of children.flat()) {
    if (child !== null && child !== undefined && child !== false) element.append(child);
  }
}

/** @param {Element} element @param {...(Child | Child[])} children what it has from now on */
export function fill(element, ...children) {
  element.replaceChildren();
  append(element, children);
}

/**
 * A button that shows an icon, and says what it does.
 *
 * @param {string} label
 * @param {Node} icon
 * @param {(event: Event) => void} onclick
 * @param {Record<string, any>} [props]
 */
export function iconButton(label, icon, onclick, props = {}) {
  const own = { type: "button", class: "icon-button", "aria-label": label, title: label };
  return h("button", { ...own, onclick, ...props }, icon);
}
