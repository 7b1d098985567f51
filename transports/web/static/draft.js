// The place where the answer will stand: while it is thought about, while tools are at work, and while it is written.

import { putBlocks } from "./blocks.js";
import { putCalls } from "./calls.js";

const draft = document.getElementById("draft");
const dots = draft.querySelector(".dots");

const state = { isAwaited: false };

function body() {
  return draft.querySelector(".body");
}

function calls() {
  return draft.querySelector(".calls");
}

function update() {
  const isWriting = body().childElementCount > 0;
  calls().hidden = !calls().childElementCount;
  dots.hidden = isWriting || Boolean(calls().querySelector("[data-state='running']"));
  draft.hidden = !isWriting && !state.isAwaited;
}

export function putDraft(at, blocks) {
  putBlocks(body(), at, blocks);
  update();
}

// Says whether an answer is to come below what stands on the page.
export function awaitAnswer(isAwaited) {
  state.isAwaited = isAwaited;
  if (!isAwaited && calls().childElementCount) calls().replaceChildren();
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

// Returns the cards, to stand in the message that takes their place.
export function takeCalls() {
  const taken = calls();
  const fresh = taken.cloneNode(false);
  taken.replaceWith(fresh);
  update();
  return taken;
}

export function showCalls(shown) {
  putCalls(calls(), shown);
  update();
}
