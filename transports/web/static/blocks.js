// The blocks of an answer, changed in place: what is the same stays, and with it what is selected or scrolled.

import { announce } from "./announcing.js";

const SCROLLED = ".table, .code pre, .formula";
const sizes = new ResizeObserver((changes) => changes.forEach((each) => showMore(each.target)));

// Says on which sides there is more of what scrolls by itself; the edge fades there.
function showMore(frame) {
  if (!frame.isWatched) {
    frame.isWatched = true;
    sizes.observe(frame);
    frame.addEventListener("scroll", () => showMore(frame), { passive: true });
  }
  const left = Math.abs(frame.scrollLeft);
  const right = frame.scrollWidth - frame.clientWidth - left;
  const isTurned = getComputedStyle(frame).direction === "rtl";
  const sides = [left > 1 && (isTurned ? "right" : "left"), right > 1 && (isTurned ? "left" : "right")];
  const more = sides.filter(Boolean).join(" ");
  if ((frame.dataset.more ?? "") !== more) frame.dataset.more = more;
}

function blockOf(html) {
  const block = document.createElement("div");
  block.className = "block";
  block.dir = "auto";
  block.innerHTML = html; // made by the server from Markdown, without any HTML of its author's
  return block;
}

// Puts blocks in the place of those from a number on.
export function putBlocks(body, at, blocks) {
  blocks.forEach((html, index) => {
    const known = body.children[at + index];
    if (known?.source === html) return;
    const made = blockOf(html);
    if (known) adapt(known, made);
    else body.append(made);
    const block = known || made;
    block.source = html;
    if (!body.matches(".told")) for (const frame of block.querySelectorAll(".code")) addCopy(frame);
    for (const each of block.querySelectorAll(SCROLLED)) showMore(each);
  });
  while (body.children.length > at + blocks.length) body.lastElementChild.remove();
}

function adapt(known, wanted) {
  const kept = [...known.childNodes].filter((node) => !node.isAdded);
  const nodes = [...wanted.childNodes];
  nodes.forEach((node, index) => {
    const old = kept[index];
    if (!old) known.append(node);
    else if (old.nodeType !== node.nodeType || old.nodeName !== node.nodeName) old.replaceWith(node);
    else if (old.nodeType === Node.TEXT_NODE) adaptText(old, node);
    else adaptElement(old, node);
  });
  for (const old of kept.slice(nodes.length)) old.remove();
}

function adaptText(old, node) {
  if (node.data.startsWith(old.data)) old.appendData(node.data.slice(old.length)); // a selection in it stays
  else old.data = node.data;
}

function adaptElement(old, node) {
  for (const { name } of [...old.attributes]) if (!node.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of node.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  adapt(old, node);
}

function addCopy(frame) {
  if (!navigator.clipboard || frame.querySelector("button")) return;
  const copy = document.createElement("button");
  copy.type = "button";
  copy.className = "quiet";
  copy.textContent = "Copy";
  copy.setAttribute("aria-label", "Copy code");
  copy.isAdded = true;
  copy.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(frame.querySelector("pre").textContent);
      copy.textContent = "Copied";
      announce("Copied.");
    } catch {
      copy.textContent = "Not copied";
    }
    setTimeout(() => (copy.textContent = "Copy"), 1500);
  });
  frame.append(copy);
}
