import { prepareTree } from "./tree.js";

// What the inspector's pages do by themselves: they follow what happens, and copy requests. Without it they can be read.

const EVERY_MILLISECONDS = 2000;
const MOST_MILLISECONDS = 30000;

const main = document.querySelector("main");
const sign = document.querySelector(".live");
let tag = null;
let wait = EVERY_MILLISECONDS;

const say = (word, isLost) => {
  if (!sign) return;
  sign.hidden = false;
  sign.classList.toggle("lost", isLost);
  const shown = sign.querySelector(".word");
  if (shown.textContent !== word) shown.textContent = word;
};

// Whoever reads or writes here is not disturbed: a selection and a form that is being filled in stay.
const isBusy = () =>
  (document.getSelection()?.toString() ?? "") !== "" ||
  Boolean(document.activeElement?.closest?.("main form, main .sure[open]")) ||
  Boolean(main.querySelector(".sure[open]"));

const keysOf = (root) => {
  const found = new Map();
  for (const each of root.querySelectorAll("details")) {
    const label = each.querySelector("summary")?.textContent.replace(/[\d,]+/g, "#") ?? "";
    const key = `${each.closest("[id]")?.id ?? ""}/${label}`;
    found.set(found.has(key) ? `${key}/${found.size}` : key, each);
  }
  return found;
};

const place = () => {
  const active = document.activeElement;
  if (!active || !main.contains(active)) return null;
  return [...main.querySelectorAll("a, button, summary, [tabindex]")].indexOf(active);
};

const show = (text) => {
  const next = new DOMParser().parseFromString(text, "text/html").querySelector("main");
  if (!next) return;
  const before = keysOf(main);
  for (const [key, each] of keysOf(next)) if (before.has(key)) each.open = before.get(key).open;
  const focused = place();
  const scrolled = main.querySelector(".tree")?.scrollTop ?? 0;
  main.replaceChildren(...next.childNodes);
  main.toggleAttribute("data-live", next.hasAttribute("data-live"));
  if (focused !== null) main.querySelectorAll("a, button, summary, [tabindex]")[focused]?.focus({ preventScroll: true });
  prepare();
  main.querySelector(".tree")?.scrollTo({ top: scrolled, behavior: "instant" });
};

const look = async () => {
  if (!main.hasAttribute("data-live")) {
    if (sign) sign.hidden = true;
    return;
  }
  if (!document.hidden && !isBusy()) {
    try {
      const headers = { Accept: "text/html", ...(tag ? { "If-None-Match": tag } : {}) };
      const answer = await fetch(location.href, { headers, cache: "no-store", credentials: "same-origin" });
      if (answer.status === 200) {
        const text = await answer.text();
        if (!isBusy()) {
          show(text); // also the first time: something may have happened since the page was loaded
          tag = answer.headers.get("ETag");
        }
      }
      const isThere = answer.ok || answer.status === 304;
      say(isThere ? "Live" : "Not followed", !isThere);
      wait = isThere ? EVERY_MILLISECONDS : Math.min(MOST_MILLISECONDS, wait * 2);
    } catch {
      say("Not reached", true);
      wait = Math.min(MOST_MILLISECONDS, wait * 2);
    }
  }
  setTimeout(look, wait);
};

const copy = async (button) => {
  const before = button.textContent;
  try {
    const answer = await fetch(button.dataset.copy, { credentials: "same-origin" });
    if (!answer.ok) throw new Error(String(answer.status));
    await navigator.clipboard.writeText(await answer.text());
    button.textContent = "Copied";
  } catch {
    button.textContent = "Not copied: open it instead";
  }
  setTimeout(() => (button.textContent = before), 3000);
};

const clock = new Intl.DateTimeFormat("sv-SE", { dateStyle: "short", timeStyle: "medium" }); // 2026-01-31 18:05:09

// Writes times as those of the reader's clock; what stood there, in UTC, comes with the pointer.
const prepareTimes = (root) => {
  for (const each of root.querySelectorAll("time[datetime]:not([title])")) {
    each.title = each.textContent;
    each.textContent = clock.format(new Date(each.dateTime));
  }
};

// A page that is not from a safe address has no clipboard: there the links are enough.
const prepare = () => {
  if (navigator.clipboard) for (const each of main.querySelectorAll("[data-copy]")) each.hidden = false;
  prepareTree(main);
  prepareTimes(main);
};

main.addEventListener("click", (event) => {
  const button = event.target.closest("[data-copy]");
  if (button) copy(button);
});
document.addEventListener("visibilitychange", () => {
  wait = EVERY_MILLISECONDS;
});
prepare();
if (main.hasAttribute("data-live")) {
  say("Live", false);
  setTimeout(look, EVERY_MILLISECONDS);
}
