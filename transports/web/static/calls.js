// The cards of tool calls: while they run, and above the answer that they were made for.

import { element } from "./element.js";

const STATES = {
  running: "at work",
  done: "",
  failed: "failed",
  cut: "not finished",
  denied: "denied",
  expired: "not allowed in time",
  withdrawn: "not made",
};
const FEW = 3; // cards that stand by themselves; of more, one line says how many there are
const second = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1, minimumFractionDigits: 1 });

// Puts cards into a place, changing those that stand there.
export function putCalls(place, calls) {
  calls.forEach((call, index) => {
    let card = place.children[index];
    if (!card) place.append((card = cardOf()));
    fill(card, call);
  });
  while (place.childElementCount > calls.length) place.lastElementChild.remove();
}

// Returns the cards of a turn that has ended; those that were shown while it ran stay as they are, opened or not.
export function callsOf(calls, place = element("div", { class: "calls" })) {
  putCalls(place, calls);
  place.hidden = false;
  const before = calls[0].before ?? 0;
  if (before) place.prepend(element("p", { class: "faint" }, `${before} earlier calls are not shown`));
  if (calls.length <= FEW) return place;
  const failed = calls.filter((each) => each.state === "failed").length;
  const text = `${before + calls.length} tool calls${failed ? `, ${failed} failed` : ""}`;
  const all = element("details", { class: "call all" }, element("summary", {}, element("b", {}, text)), place);
  all.dataset.state = failed ? "failed" : "done";
  all.open = Boolean(place.querySelector("[open]"));
  return all;
}

function cardOf() {
  const summary = element("summary", {}, element("b", {}), " ", element("span", { class: "state" }), " ", element("span", { class: "said", dir: "auto" }));
  return element("details", { class: "call" }, summary);
}

function fill(card, call) {
  card.dataset.state = call.state;
  write(card.querySelector("b"), call.name);
  write(card.querySelector(".state"), STATES[call.state]);
  write(card.querySelector(".said"), call.state === "running" ? call.said : durationOf(call.seconds));
  putPart(card, "arguments", "Arguments", call.arguments || "None");
  if (call.result !== undefined) putPart(card, "result", call.state === "failed" ? "Error" : "Result", call.result || "Nothing");
}

function putPart(card, name, label, text) {
  let part = card.querySelector(`.${name}`);
  if (!part) {
    const pre = element("pre", { dir: "auto", tabindex: "0", role: "group", "aria-label": label });
    part = element("div", { class: name }, element("div", { class: "label", "aria-hidden": "true" }, label), pre);
    card.append(part);
  }
  write(part.querySelector("pre"), text);
}

function durationOf(seconds) {
  if (seconds == null) return "";
  if (seconds < 0.1) return "under 0.1 s";
  if (seconds < 60) return `${second.format(seconds)} s`;
  return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}

function write(place, text) {
  if (place.textContent !== text) place.textContent = text;
}
