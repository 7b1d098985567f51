// Pictures on buttons; what they mean stands in the buttons' labels.

const SVG = "http://www.w3.org/2000/svg";
const PATHS = {
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  again: "M20 11a8 8 0 1 0-2 6M20 5v6h-6",
  edit: "M4 20h4L19 9l-4-4L4 16zM13 7l4 4",
  why: "M9.5 9.5a2.5 2.5 0 1 1 3.5 2.3c-.7.4-1 .9-1 1.7M12 16.5v.1M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18z",
  good: "M7 11v9H4v-9zM7 11l4-8a2.5 2.5 0 0 1 2.5 2.5V9H19a2 2 0 0 1 2 2.3l-1.2 7A2 2 0 0 1 17.8 20H7",
  bad: "M7 13V4H4v9zM7 13l4 8a2.5 2.5 0 0 0 2.5-2.5V15H19a2 2 0 0 0 2-2.3l-1.2-7A2 2 0 0 0 17.8 4H7",
  rename: "M4 20h4L19 9l-4-4L4 16zM13 7l4 4",
  delete: "M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13",
  file: "M6 3h8l4 4v14H6zM14 3v4h4",
};

export function icon(name) {
  const made = document.createElementNS(SVG, "svg");
  const path = document.createElementNS(SVG, "path");
  made.setAttribute("viewBox", "0 0 24 24");
  made.setAttribute("aria-hidden", "true");
  path.setAttribute("d", PATHS[name]);
  made.append(path);
  return made;
}
