// Which conversation is open, as the address says: `/c/<id>`, and `/` for a new one.

const PREFIX = "/c/";

/** @returns {string | null} */
export function addressed() {
  const { pathname } = location;
  return pathname.startsWith(PREFIX) ? decodeURIComponent(pathname.slice(PREFIX.length)) : null;
}

/** @param {string | null} id */
export function addressOf(id) {
  return id === null ? "/" : PREFIX + id;
}

/**
 * Another conversation is open from now on, and the browser's way back leads to this one.
 *
 * @param {string | null} id
 */
export function goTo(id) {
  if (id !== addressed()) history.pushState(null, "", addressOf(id));
}

/** This conversation has got its address. @param {string} id */
export function settleAt(id) {
  history.replaceState(null, "", addressOf(id));
}

/** @param {MouseEvent} event whether a click asks for another tab, or window */
export function wantsAnother(event) {
  return event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0;
}
