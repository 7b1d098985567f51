// The chat: what the server tells is shown, what the person does is posted.

import { clearDraft, putDraft, showCalls } from "./draft.js";
import { setUpComposer } from "./composer.js";
import { follow } from "./stream.js";
import { setUpScrolling } from "./scrolling.js";
import * as view from "./view.js";
import { conversation, newId, post } from "./posting.js";

const status = document.getElementById("status");
const stop = document.getElementById("stop");
const problem = document.getElementById("problem");
const earlier = document.getElementById("earlier");

const RETRY = "/retry";
const IDLE = { activity: "", isWriting: false, isStopping: false };
const state = { working: false, isConnected: true, trouble: false, isReady: false, ...IDLE };

function say() {
  const isBusy = state.isConnected && !state.trouble && state.working;
  let text = "";
  if (!state.isConnected) text = "No connection. Trying again…";
  else if (state.trouble) text = "The service has trouble with its storage. Trying again…";
  else if (state.working && state.isStopping) text = "Stopping…";
  else if (state.working && state.activity) text = state.activity.includes(" ") ? `${state.activity}…` : `Using ${state.activity}…`;
  else if (state.working) text = state.isWriting ? "Writing…" : "Thinking…";
  if (status.textContent !== text) status.textContent = text;
  status.classList.toggle("busy", isBusy);
  stop.hidden = !state.working;
  stop.disabled = state.isStopping;
  view.showWork(state.working && !state.isStopping);
}

// Where the focus goes when what had it is about to go: a touch screen would open its keyboard for the field.
function keepFocus() {
  const place = matchMedia("(hover: none)").matches ? "scroll" : "text";
  document.getElementById(place).focus({ preventScroll: true });
}

function complain(text) {
  problem.textContent = text;
  problem.hidden = !text;
}

const scrolling = setUpScrolling();

const handlers = {
  reset: () => {
    view.clear();
    earlier.hidden = true;
  },
  earlier: () => (earlier.hidden = false),
  message: (message) => {
    view.showMessage(message);
    if (state.working && message.role === "user") document.dispatchEvent(new CustomEvent("changed"));
    if (document.hidden && message.role === "assistant") document.title = `● ${document.body.dataset.service}`;
  },
  notice: (notice) => view.showNotice(notice),
  waiting: (message) => message.text !== RETRY && view.showWaiting(message, "Waiting…", { isAccepted: true }),
  trouble: () => (state.trouble = true),
  state: ({ working }) => {
    const hasChanged = state.working !== working;
    const wasStopped = hasChanged && !working && state.isStopping;
    Object.assign(state, { working, trouble: false });
    if (!working) {
      Object.assign(state, IDLE);
      view.dropAccepted();
    }
    view.ready();
    if (!state.isReady) {
      state.isReady = true;
      queueMicrotask(showNamed);
    }
    if (hasChanged || !working) document.dispatchEvent(new CustomEvent("changed"));
    if (wasStopped) queueMicrotask(() => (status.textContent = "Stopped."));
  },
  draft: ({ blocks, activity }) => {
    Object.assign(state, { activity: activity || "", isWriting: blocks.length > 0 });
    putDraft(0, blocks);
  },
  blocks: ({ at, blocks }) => {
    state.isWriting = true;
    putDraft(at, blocks);
  },
  calls: ({ calls }) => showCalls(calls),
  stopped: (question) => view.markStopped(question),
  progress: ({ activity }) => (state.activity = activity),
  draft_end: () => {
    Object.assign(state, { activity: "", isWriting: false });
    clearDraft();
  },
};

document.addEventListener("visibilitychange", () => {
  if (!document.hidden) document.title = document.body.dataset.service;
});

follow({
  isAwaited: () => state.working,
  onEvent: (name, data) => {
    scrolling.keep(() => {
      handlers[name](data);
      say();
    });
  },
  onConnection: (isConnected) => {
    state.isConnected = isConnected;
    say();
  },
  onRefused: (text) => complain(text),
});

async function stopAnswer() {
  if (!state.working || state.isStopping) return;
  state.isStopping = true;
  keepFocus();
  say();
  const answer = await post("/web/stop", { id: newId() });
  if (answer.ok) return;
  state.isStopping = false;
  complain(answer.error);
  say();
}

setUpComposer({ complain, scrolling, isIdle: () => state.isConnected && !state.working, stop: stopAnswer });

stop.addEventListener("click", stopAnswer);

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !event.isComposing && !event.defaultPrevented) stopAnswer();
});

document.addEventListener("retry", async ({ detail: button }) => {
  complain("");
  keepFocus();
  const answer = await post("/web/messages", { id: newId(), text: RETRY, is_pressed: true });
  if (answer.ok) return;
  complain(answer.error);
  button.disabled = false;
});

document.addEventListener("decide", async ({ detail: { decides, row } }) => {
  complain("");
  const answer = await post("/web/decide", { id: newId(), text: decides });
  if (answer.ok && answer.said.is_taken) return; // the message that asked says so itself
  complain(answer.ok ? answer.said.text : answer.error);
  for (const each of row.querySelectorAll("button")) each.disabled = false;
  row.querySelector(".chosen")?.classList.remove("chosen");
});

document.addEventListener("complain", ({ detail }) => complain(detail));

document.getElementById("new").addEventListener("click", async () => {
  const answer = await post("/web/new", {});
  if (answer.ok) location.assign(`/?conversation=${answer.said.conversation}&new`);
  else complain(answer.error);
});

async function showEarlier() {
  const answer = await fetch(`/web/earlier?conversation=${conversation}&before=${view.firstMessageId()}`).catch(() => null);
  if (!answer?.ok) {
    complain("Earlier messages could not be loaded. Try again in a moment.");
    return false;
  }
  const page = await answer.json();
  scrolling.keepFromBottom(() => view.showEarlier(page));
  earlier.hidden = !page.has_earlier;
  return true;
}

earlier.querySelector("button").addEventListener("click", showEarlier);

// Shows the message or notice that the address names, where a search has found it.
async function showNamed() {
  const id = location.hash.slice(1);
  if (!/^(message|notice)-\d+$/.test(id)) return;
  while (!document.getElementById(id) && !earlier.hidden && (await showEarlier())) continue;
  const named = document.getElementById(id);
  if (!named) return;
  for (const each of document.querySelectorAll(".named")) each.classList.remove("named");
  named.classList.add("named");
  scrolling.to(named);
}

addEventListener("hashchange", showNamed);
