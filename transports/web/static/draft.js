// The place where the answer will stand: while it is thought about, while tools are at work, and while it is written.

import { putBlocks } from "./blocks.js";

const draft = document.getElementById("draft");
const calls = draft.querySelector(".calls");
const dots = draft.querySelector(".dots");
const STATES = { running: "at work", done: "done", failed: "failed" };

const state = { isAwaited: false };

function body() {
  return draft.querySelector(".body");
}

function update() {
  const isWriting = body().childElementCount > 0;
  calls.hidden = isWriting;
  dots.hidden = isWriting || Boolean(calls.querySelector("[data-state='running']"));
  draft.hidden = !isWriting && !state.isAwaited;
}

export function putDraft(at, blocks) {
  putBlocks(body(), at, blocks);
  update();
}

// Says whether an answer is to come below what stands on the page.
export function awaitAnswer(isAwaited) {
  state.isAwaited = isAwaited;
  if (!isAwaited && calls.childElementCount) calls.replaceChildren();
  update();
}

export function clearDraft() {
  body().replaceChildren();
  update();
}

// Returns the body with what is written, to stand in the message that takes its place.
export function takeBody() {
  const taken = body();
  const fresh = taken.cloneNode(false);
  taken.replaceWith(fresh);
  update();
  return taken;
}

export function showCalls(shown) {
  shown.forEach((call, index) => {
    let card = calls.children[index];
    if (!card) calls.append((card = cardOf()));
    fill(card, call);
  });
  while (calls.childElementCount > shown.length) calls.lastElementChild.remove();
  update();
}

function cardOf() {
  const card = document.createElement("details");
  card.className = "call";
  card.innerHTML = "<summary><b></b> <span class='unseen'></span><span class='said' dir='auto'></span></summary><pre dir='auto'></pre>";
  return card;
}

function fill(card, call) {
  card.dataset.state = call.state;
  write(card, "b", call.name);
  write(card, ".unseen", STATES[call.state]);
  write(card, ".said", call.state === "running" ? call.said : "");
  write(card, "pre", call.arguments || "Without arguments.");
}

function write(card, selector, text) {
  const place = card.querySelector(selector);
  if (place.textContent !== text) place.textContent = text;
}
