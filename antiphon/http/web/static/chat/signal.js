// Somebody says something, and whoever listens hears it at once.

/** @template {any[]} T */
export class Signal {
  constructor() {
    /** @type {Set<(...said: T) => void>} */
    this.listeners = new Set();
  }

  /** @param {(...said: T) => void} listener @returns {() => void} to listen no longer */
  on(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** @param {T} said */
  emit(...said) {
    for (const listener of [...this.listeners]) listener(...said);
  }
}
