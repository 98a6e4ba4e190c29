// Keys that work anywhere on the page.

/**
 * @param {Record<"stop" | "begin" | "search" | "list" | "write" | "copy" | "keys", () => void>} act
 */
export function listenForKeys(act) {
  addEventListener("keydown", (event) => {
    if (event.defaultPrevented || document.querySelector("dialog[open]")) return;
    const what = meaning(event);
    if (what === null) return;
    event.preventDefault();
    act[what]();
  });
}

/**
 * @param {KeyboardEvent} event
 * @returns {"stop" | "begin" | "search" | "list" | "write" | "copy" | "keys" | null}
 */
function meaning(event) {
  const control = event.ctrlKey || event.metaKey;
  if (event.key === "Escape") return event.shiftKey ? "write" : "stop";
  if (control && event.shiftKey && event.code === "KeyO") return "begin";
  if (control && event.shiftKey && event.code === "KeyS") return "list";
  if (control && event.shiftKey && event.code === "KeyC") return "copy";
  if (control && !event.shiftKey && event.code === "KeyK") return "search";
  if (event.key === "?" && !isWriting(event.target)) return "keys";
  return null;
}

/** @param {EventTarget | null} target */
function isWriting(target) {
  return target instanceof HTMLElement && target.matches("input, textarea, select");
}
