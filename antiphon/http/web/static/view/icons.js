// Line icons, 24 by 24, drawn for this page.

const SVG = "http://www.w3.org/2000/svg";

const PATHS = {
  archive: "M4 5h16v4H4zM5.5 9v10h13V9M10 13h4",
  attach:
    "M19 11.5l-7.4 7.4a4.6 4.6 0 0 1-6.5-6.5l8-8a3.1 3.1 0 0 1 4.4 4.4l-8 8a1.5 1.5 0 0 1-2.2-2.2l7-7",
  branch:
    "M7 5v14M7 14c0-4 10-3 10-7M17 7a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM7 5a1 1 0 1 0 0-2 1 1 0 0 0 0 2z",
  check: "M5 12.5l4.5 4.5L19 7.5",
  close: "M6 6l12 12M18 6L6 18",
  copy: "M9 9h10v11H9zM5.5 15H5V4h10v1.5",
  down: "M12 5v14M6 13l6 6 6-6",
  edit: "M4 20h4L19 9l-4-4L4 16zM13 7l4 4",
  file: "M7 3h7l4 4v14H7zM14 3v5h4",
  left: "M14.5 6l-6 6 6 6",
  memory: "M7 4h10v16l-5-3.500L7 20z",
  menu: "M4 7h16M4 12h16M4 17h16",
  more: "M6 12h.01M12 12h.01M18 12h.01",
  moon: "M20 14.5A8 8 0 0 1 9.5 4 8 8 0 1 0 20 14.5z",
  plus: "M12 5v14M5 12h14",
  redo: "M19 5v5h-5M18.5 10A7 7 0 1 0 19 14",
  right: "M9.5 6l6 6-6 6",
  search: "M10.5 17a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13zM15.5 15.5L20 20",
  send: "M12 19V5M6 11l6-6 6 6",
  settings:
    "M4 7h9M17 7h3M4 17h3M11 17h9M15 9.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM9 19.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5z",
  stop: "M7 7h10v10H7z",
  thumbDown:
    "M7 13V4h9.5a2 2 0 0 1 2 1.6l1 5a2 2 0 0 1-2 2.4H14l.8 4.2A2.3 2.3 0 0 1 11 19zM7 4H4v9h3",
  thumbUp:
    "M7 11v9h9.5a2 2 0 0 0 2-1.6l1-5a2 2 0 0 0-2-2.4H14l.8-4.2A2.3 2.3 0 0 0 11 5zM7 20H4v-9h3",
  trash: "M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13M10.5 11v5M13.5 11v5",
};

/** @param {keyof typeof PATHS} name */
export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", PATHS[name]);
  svg.append(path);
  return svg;
}
