// What the browser keeps for this page. Where it keeps nothing (private windows, blocked storage,
// no room), the page works all the same until it is closed.

/** @param {"localStorage" | "sessionStorage"} name */
function storage(name) {
  try {
    const found = globalThis[name];
    found.setItem("antiphon.probe", "1");
    found.removeItem("antiphon.probe");
    return found;
  } catch {
    return null;
  }
}

class Shelf {
  /** @param {Storage | null} storage */
  constructor(storage) {
    this.storage = storage;
    /** @type {Map<string, string>} */
    this.here = new Map();
  }

  /** @param {string} name @returns {any} */
  get(name) {
    const text = this.storage?.getItem(`antiphon.${name}`) ?? this.here.get(name) ?? null;
    try {
      return text === null ? null : JSON.parse(text);
    } catch {
      return null;
    }
  }

  /** @param {string} name @param {any} value null and undefined are nothing */
  set(name, value) {
    if (value === null || value === undefined) return this.remove(name);
    const text = JSON.stringify(value);
    this.here.set(name, text);
    try {
      this.storage?.setItem(`antiphon.${name}`, text);
    } catch {
      // No room: it lasts as long as the page.
    }
  }

  /** @param {string} name */
  remove(name) {
    this.here.delete(name);
    this.storage?.removeItem(`antiphon.${name}`);
  }

  /** @param {string} prefix @returns {string[]} */
  names(prefix) {
    const kept = this.storage ? Object.keys(this.storage) : [];
    const own = kept.filter((name) => name.startsWith("antiphon."));
    const all = new Set([
      ...own.map((name) => name.slice("antiphon.".length)),
      ...this.here.keys(),
    ]);
    return [...all].filter((name) => name.startsWith(prefix));
  }
}

/** Until the browser forgets it, in every tab. */
export const kept = new Shelf(storage("localStorage"));
/** Until this tab is closed. */
export const lent = new Shelf(storage("sessionStorage"));
