// What can be done at a message: copy, ask again, edit, see why, say what one thinks of it. One stop of the tab key for
// each message; the arrow keys go from action to action.

import { announce } from "./announcing.js";
import { icon } from "./icons.js";
import { post } from "./posting.js";
import { showWhy } from "./why.js";

function complain(text) {
  document.dispatchEvent(new CustomEvent("complain", { detail: text }));
}

function action(name, label, onPress) {
  const made = document.createElement("button");
  made.type = "button";
  made.className = name;
  made.title = label;
  made.setAttribute("aria-label", label);
  made.append(icon(name));
  made.addEventListener("click", () => onPress(made));
  return made;
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    announce("Copied.");
    return true;
  } catch {
    complain("Your browser did not let this be copied.");
    return false;
  }
}

async function copyAction(button, message) {
  if (!(await copy(message.text))) return;
  button.classList.add("done");
  setTimeout(() => button.classList.remove("done"), 1500);
}

function opinionOf(verdict, label, message, bar) {
  const made = action(verdict, label, async () => {
    const before = message.verdict ?? null;
    show(bar, message, before === verdict ? null : verdict);
    const answer = await post("/web/feedback", { message: message.id, verdict: message.verdict });
    if (answer.ok) return announce(message.verdict ? "Thank you." : "Taken back.");
    show(bar, message, before);
    complain(answer.error);
  });
  made.dataset.verdict = verdict;
  return made;
}

function show(bar, message, verdict) {
  message.verdict = verdict;
  for (const each of bar.querySelectorAll("[data-verdict]")) {
    each.setAttribute("aria-pressed", String(each.dataset.verdict === verdict));
  }
}

function isNewestQuestion(element) {
  return !document.querySelector("#waiting > li") && [...document.querySelectorAll("#log > .user")].at(-1) === element;
}

function edit(element, message) {
  const detail = { message, isNewest: isNewestQuestion(element) };
  document.dispatchEvent(new CustomEvent("edit", { detail }));
}

export function askAgain(button) {
  button.disabled = true;
  document.dispatchEvent(new CustomEvent("retry", { detail: button }));
}

function actionsOf(element, message, bar) {
  const made = [];
  if (message.text && navigator.clipboard) made.push(action("copy", "Copy", (button) => copyAction(button, message)));
  if (message.role === "user") {
    if (message.client_id) made.push(action("edit", "Edit and ask again", () => edit(element, message)));
  } else if (message.is_answer) {
    made.push(action("again", "Ask again", askAgain));
    made.push(opinionOf("good", "Good answer", message, bar), opinionOf("bad", "Bad answer", message, bar));
    made.push(action("why", "Why this answer", (button) => showWhy(message.id, button, complain)));
  }
  return made;
}

function isReachable(button) {
  return button.offsetParent !== null;
}

function rove(bar, event) {
  const steps = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity };
  if (!(event.key in steps)) return;
  const all = [...bar.children].filter(isReachable);
  const at = Math.min(Math.max(all.indexOf(document.activeElement) + steps[event.key], 0), all.length - 1);
  event.preventDefault();
  for (const each of bar.children) each.tabIndex = each === all[at] ? 0 : -1;
  all[at].focus();
}

// Asking again goes when something else is asked, and must not take the way to the others with it.
function stopAtFirst(all) {
  const first = all.find((each) => !each.matches(".again"));
  for (const each of all) each.tabIndex = each === first ? 0 : -1;
}

export function attachActions(element, message) {
  const bar = document.createElement("div");
  const made = actionsOf(element, message, bar);
  if (!made.length) return;
  bar.className = "actions";
  bar.setAttribute("role", "toolbar");
  bar.setAttribute("aria-label", message.role === "user" ? "What you can do with your message" : "What you can do with this answer");
  bar.append(...made);
  stopAtFirst(made);
  show(bar, message, message.verdict ?? null);
  bar.addEventListener("keydown", (event) => rove(bar, event));
  bar.addEventListener("focusout", ({ target }) => target.matches(".again") && stopAtFirst(made));
  (element.querySelector(".meta:last-of-type") ?? element).append(bar);
}
