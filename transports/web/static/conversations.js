// The list of conversations: found, opened, renamed, deleted. Beside the chat where there is room, else in a drawer.

import { announce } from "./announcing.js";
import { element } from "./element.js";
import { icon } from "./icons.js";
import { conversation, post } from "./posting.js";
import { listedTimeOf } from "./times.js";
import { forgetUnsent } from "./unsent.js";

const NARROW = matchMedia("(max-width: 60rem)");
const UNTIL_SOUGHT = 200; // milliseconds without a key
const UNNAMED = "New conversation";

const aside = document.getElementById("conversations");
const opener = document.getElementById("open-list");
const shade = document.getElementById("shade");
const find = document.getElementById("find");
const found = document.getElementById("found");
const mine = document.getElementById("mine");
const more = document.getElementById("more");
const deleting = document.getElementById("deleting");
const behind = [document.querySelector("main"), document.querySelector("footer"), document.querySelector("header")];

function complain(text) {
  document.dispatchEvent(new CustomEvent("complain", { detail: text }));
}

// The drawer: what lies behind it cannot be reached while it is open.

function setDrawer(isOpen) {
  const wasOpen = aside.classList.contains("open");
  aside.classList.toggle("open", isOpen);
  shade.hidden = !isOpen;
  opener.setAttribute("aria-expanded", String(isOpen));
  for (const each of behind) each.inert = isOpen;
  if (isOpen) find.focus();
  else if (wasOpen) opener.focus();
}

opener.addEventListener("click", () => setDrawer(true));
document.getElementById("close-list").addEventListener("click", () => setDrawer(false));
shade.addEventListener("click", () => setDrawer(false));
NARROW.addEventListener("change", () => setDrawer(false));
addEventListener("hashchange", () => setDrawer(false)); // a message of the open chat was found
// Before the chat hears of the key, which would stop an answer.
addEventListener(
  "keydown",
  (event) => {
    if (event.key !== "Escape" || !aside.classList.contains("open") || deleting.open || event.target.closest("#mine form")) return;
    event.preventDefault();
    setDrawer(false);
  },
  true,
);

// The list.

let asked = 0;
let last = null;

async function load({ below = null } = {}) {
  const number = ++asked;
  const query = new URLSearchParams({ search: find.value.trim() });
  if (below) query.set("before", below);
  const answer = await fetch(`/web/conversations?${query}`).catch(() => null);
  const said = answer?.ok ? await answer.json().catch(() => null) : null;
  if (number !== asked || !said) return; // something else was asked meanwhile, or the chat itself says what is wrong
  if (mine.querySelector("form")) return; // a title is being written
  show(said.conversations, said.has_more, below !== null);
}

function show(listed, hasMore, isMore) {
  const items = listed.map(itemOf);
  const focused = document.activeElement.closest("#mine li");
  const place = focused ? [...focused.children].indexOf(document.activeElement) : 0;
  if (isMore) mine.append(...items);
  else mine.replaceChildren(...items);
  more.hidden = !hasMore;
  last = listed.at(-1)?.place ?? last;
  const sought = find.value.trim();
  found.textContent = sought ? (listed.length || isMore ? `${mine.children.length}${hasMore ? " or more" : ""} found` : "Nothing found") : "";
  if (isMore) items[0]?.querySelector("a").focus();
  else if (focused) mine.querySelector(`[data-name="${CSS.escape(focused.dataset.name)}"]`)?.children[place]?.focus();
}

function itemOf(listed) {
  const title = listed.title || UNNAMED;
  const place = listed.hit ? `#${listed.hit.place}` : "";
  const link = element("a", { href: `/?conversation=${listed.name}${place}`, title, dir: "auto" }, title);
  if (listed.name === conversation) link.setAttribute("aria-current", "page");
  const made = element("li", {}, link);
  made.dataset.name = listed.name;
  made.append(buttonOf("rename", `Rename ${title}`, () => beginRenaming(made, listed, title)));
  made.append(buttonOf("delete", `Delete ${title}`, () => askToDelete(made, listed, title)));
  if (listed.hit) made.append(element("p", { dir: "auto" }, ...listed.hit.parts.map((each) => (each.is_hit ? element("mark", {}, each.text) : each.text))));
  if (listed.at) made.append(listedTimeOf(listed.at));
  return made;
}

function buttonOf(name, label, onPress) {
  const made = element("button", { type: "button", class: "quiet", "aria-label": label, title: label }, icon(name));
  made.addEventListener("click", onPress);
  return made;
}

function beginRenaming(item, listed, title) {
  const field = element("input", { value: title, maxlength: "120", "aria-label": "Title; empty for the first words" });
  const form = element("form", {}, field);
  const children = [...item.children];
  item.replaceChildren(form);
  field.select();
  field.focus();

  function end() {
    item.replaceChildren(...children);
    item.querySelector("button").focus();
  }

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const answer = await post("/web/conversations/rename", { conversation: listed.name, title: field.value });
    end();
    if (!answer.ok) return complain(answer.error);
    announce("Renamed.");
    await load();
  });
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    event.preventDefault();
    end();
  });
  field.addEventListener("blur", () => setTimeout(() => form.isConnected && !form.contains(document.activeElement) && end()));
}

function askToDelete(item, listed, title) {
  document.getElementById("deleting-what").textContent = title;
  deleting.returnValue = "";
  deleting.addEventListener("close", () => finishDeleting(item, listed), { once: true });
  deleting.showModal();
}

async function finishDeleting(item, listed) {
  if (deleting.returnValue !== "delete") return item.querySelectorAll("button")[1]?.focus();
  const answer = await post("/web/conversations/delete", { conversation: listed.name });
  if (!answer.ok) return complain(answer.error);
  forgetUnsent(listed.name);
  if (listed.name === conversation) return location.assign("/");
  announce("Deleted.");
  const next = item.nextElementSibling ?? item.previousElementSibling;
  item.remove();
  (next?.querySelector("a") ?? find).focus();
}

let seeking = 0;
find.addEventListener("input", () => {
  clearTimeout(seeking);
  seeking = setTimeout(load, UNTIL_SOUGHT);
});
more.addEventListener("click", () => load({ below: last }));
document.addEventListener("changed", () => load());
load();
