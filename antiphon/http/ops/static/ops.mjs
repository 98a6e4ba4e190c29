// Keeps the page as it is now: fetches it again and changes only what differs, so that focus,
// scrolling and selections stay. The server draws it, with or without this script.

const EVERY_MS = 2000;
const main = document.querySelector("main");
const away = document.querySelector("#away");
const button = document.querySelector("#pause");
let paused = false;
let answeredAt = Date.now();

/** Make `old` equal to `fresh`. Children with a `data-key` are found again wherever they move. */
export function morph(old, fresh) {
  for (const { name } of [...old.attributes]) {
    if (!fresh.hasAttribute(name)) old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  const keyed = new Map();
  for (const child of old.children) {
    if (child.dataset?.key !== undefined) keyed.set(child.dataset.key, child);
  }
  let place = old.firstChild;
  for (const next of [...fresh.childNodes]) {
    const key = next.dataset?.key;
    const same = key === undefined ? place : keyed.get(key);
    if (!fits(same, next, key)) {
      old.insertBefore(document.importNode(next, true), place);
      continue;
    }
    if (same === place) place = place.nextSibling;
    else old.insertBefore(same, place);
    if (same.nodeType === Node.ELEMENT_NODE) morph(same, next);
    else if (same.data !== next.data) same.data = next.data;
  }
  while (place !== null) {
    const gone = place;
    place = place.nextSibling;
    gone.remove();
  }
}

function fits(old, next, key) {
  return old?.nodeName === next.nodeName && old.dataset?.key === key;
}

async function refresh() {
  const answer = await fetch(location.href, {
    headers: { accept: "text/html" },
    signal: AbortSignal.timeout(5000),
  });
  if (!answer.ok) throw new Error(`the server answers with ${answer.status}`);
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  morph(main, page.querySelector("main"));
  morph(document.querySelector("#state"), page.querySelector("#state"));
  document.title = page.title;
}

async function keepFresh() {
  if (!paused && !document.hidden && main.dataset.live !== "false") {
    try {
      await refresh();
      answeredAt = Date.now();
      away.textContent = "";
    } catch (error) {
      const seconds = Math.round((Date.now() - answeredAt) / 1000);
      const since = seconds < 10 ? "a few seconds" : `${seconds - (seconds % 10)} s`;
      // The text changes rarely, so that a screen reader isn't told it every two seconds.
      away.textContent = `No answer for ${since}: this page shows how things were.`;
      console.warn(error);
    }
  }
  setTimeout(keepFresh, EVERY_MS);
}

if (button !== null) {
  button.hidden = false;
  button.addEventListener("click", () => {
    paused = !paused;
    button.setAttribute("aria-pressed", String(paused));
  });
}
setTimeout(keepFresh, EVERY_MS);
