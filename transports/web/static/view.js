// What stands on the page: messages, and what waits.

import { askAgain, attachActions } from "./actions.js";
import { putBlocks } from "./blocks.js";
import { callsOf } from "./calls.js";
import { awaitAnswer, clearDraft, takeBody, takeCalls } from "./draft.js";
import { element } from "./element.js";
import { timeOf, withLocalTimes } from "./times.js";

const log = document.getElementById("log");
const waiting = document.getElementById("waiting");
const welcome = document.getElementById("welcome");
const service = document.body.dataset.service;
const LARGEST_PICTURE = 288; // pixels, in either direction

function bodyOf(text) {
  return element("div", { class: "body plain", dir: "auto" }, text);
}

function fillBody(body, blocks) {
  putBlocks(body, 0, blocks);
  return body;
}

// Says that this is where an answer was stopped, or that there is none, and offers to ask again.
function markOf(text) {
  const retry = element("button", { type: "button", class: "retry again" }, "Retry");
  retry.addEventListener("click", () => askAgain(retry));
  return element("div", { class: "mark" }, element("span", {}, text), retry);
}

// Its place is reserved before it comes: what stands below it does not move.
function pictureOf(file) {
  const picture = element("img", { src: file.url, alt: file.name, loading: "lazy" });
  const [width, height] = file.size ?? [LARGEST_PICTURE, (LARGEST_PICTURE * 3) / 4];
  const scale = Math.min(1, LARGEST_PICTURE / width, LARGEST_PICTURE / height);
  picture.width = Math.max(1, Math.round(width * scale));
  picture.height = Math.max(1, Math.round(height * scale));
  if (!file.size) picture.className = "unmeasured";
  return picture;
}

function filesOf(files) {
  const list = element("div", { class: "files" });
  for (const file of files) {
    const link = element("a", { href: file.url, target: "_blank", rel: "noopener" });
    if (file.is_image) link.append(pictureOf(file));
    else link.append(element("bdi", {}, file.name));
    list.append(link);
  }
  return list;
}

// Buttons say what stands behind them as if it had been typed; once, so that they go with the first press. Or they
// decide about something: then the message that asks is replaced by one that says what was decided.
function buttonsOf(buttons) {
  const row = element("div", { class: "choices" });
  for (const button of buttons) {
    if (button.url) {
      row.append(element("a", { href: button.url, target: "_blank", rel: "noopener noreferrer nofollow" }, button.text));
      continue;
    }
    const made = element("button", { type: "button", ...(button.style && { "data-style": button.style }) }, button.text);
    made.addEventListener("click", () => {
      if (button.decides) row.closest("li").focus(); // which stays when its buttons go
      for (const each of row.querySelectorAll("button")) each.disabled = true;
      made.classList.add("chosen");
      if (button.decides) document.dispatchEvent(new CustomEvent("decide", { detail: { decides: button.decides, row } }));
      else document.dispatchEvent(new CustomEvent("say", { detail: button.says }));
    });
    row.append(made);
  }
  return row;
}

function messageElement(message, body = element("div", { class: "body" }), cards = undefined) {
  const isUser = message.role === "user";
  const who = isUser ? message.name || "You" : service;
  const made = element("li", { class: `message ${isUser ? "user" : "assistant"}`, id: `message-${message.id}` });
  made.dataset.at = message.at;
  made.append(element("span", { class: "unseen" }, `${who}: `));
  if (!isUser && message.calls?.length) made.append(callsOf(message.calls, cards));
  if (message.blocks?.length) made.append(fillBody(body, message.blocks));
  else if (message.text && isUser) made.append(bodyOf(message.text));
  if (message.files.length) made.append(filesOf(message.files));
  if (message.buttons?.length) made.append(buttonsOf(message.buttons));
  const meta = element("div", { class: "meta" }, timeOf(message.at));
  if (isUser && message.name) meta.prepend(element("span", {}, message.name));
  made.append(meta);
  if (message.is_stopped) addMark(made, isUser, message.calls);
  attachActions(made, message);
  return made;
}

function addMark(made, isQuestion, calls) {
  if (made.querySelector(".mark")) return;
  if (isQuestion && calls?.length) made.querySelector(".meta").before(callsOf(calls));
  made.querySelector(".meta").before(markOf(isQuestion ? "Stopped before an answer" : "Stopped"));
}

function noticeElement(notice) {
  const kind = notice.is_trouble ? " trouble" : notice.is_aside ? " aside" : "";
  const made = element("li", { class: `message notice${kind}`, id: `notice-${notice.place}` });
  made.dataset.at = notice.at;
  made.dataset.row = notice.id;
  made.tabIndex = -1; // where the focus goes when its buttons go
  if (notice.calls?.length) made.append(callsOf(notice.calls));
  if (notice.asked) made.append(element("div", { class: "asked" }, notice.asked));
  made.append(withLocalTimes(fillBody(element("div", { class: "body told" }), notice.blocks)));
  if (notice.files?.length) made.append(filesOf(notice.files));
  if (notice.buttons?.length) made.append(buttonsOf(notice.buttons));
  if (notice.is_trouble) made.append(markOf("Not answered"));
  made.append(element("div", { class: "meta" }, timeOf(notice.at)));
  return made;
}

function findWaiting(clientId) {
  return clientId ? waiting.querySelector(`[data-client-id="${CSS.escape(clientId)}"]`) : null;
}

function isShown(clientId) {
  return Boolean(clientId && log.querySelector(`[data-client-id="${CSS.escape(clientId)}"]`));
}

// Puts what has no number in the row of messages where its time is.
function insertByTime(made) {
  let after = log.lastElementChild;
  while (after && after.dataset.at > made.dataset.at) after = after.previousElementSibling;
  if (after) after.after(made);
  else log.prepend(made);
}

export function showMessage(message) {
  const known = document.getElementById(`message-${message.id}`);
  const isAnswer = message.role === "assistant";
  const made = isAnswer && !known ? messageElement(message, takeBody(), message.calls?.length ? takeCalls() : undefined) : messageElement(message);
  if (message.client_id) made.dataset.clientId = message.client_id;
  findWaiting(message.client_id)?.remove();
  if (known) known.replaceWith(made);
  else log.append(made);
  if (isAnswer) clearDraft();
  welcome.hidden = true;
}

export function showNotice(notice) {
  const known = document.getElementById(`notice-${notice.place}`);
  if (known?.dataset.row === String(notice.id)) return;
  const made = noticeElement(notice);
  if (known) {
    const hadFocus = known.contains(document.activeElement);
    known.replaceWith(made);
    if (hadFocus) made.focus();
    return;
  }
  insertByTime(made);
  if (!notice.is_aside) clearDraft(); // an answer may be written beside that
  welcome.hidden = true;
}

export function showEarlier(page) {
  log.prepend(...page.messages.filter((each) => !document.getElementById(`message-${each.id}`)).map((each) => messageElement(each)));
  for (const notice of page.notices) showNotice(notice);
}

export function firstMessageId() {
  return log.querySelector("[id^='message-']")?.id.slice("message-".length);
}

// Shows a message that is not in the conversation yet, or changes what is said of it.
export function showWaiting(message, note, { button = null, isAccepted = false } = {}) {
  if (isShown(message.client_id)) return;
  let made = findWaiting(message.client_id);
  if (!made) {
    made = element("li", { class: "message user waiting" });
    made.dataset.clientId = message.client_id;
    made.append(element("span", { class: "unseen" }, "You: "));
    if (message.text) made.append(bodyOf(message.text));
    const files = message.files ? `${message.files} ${message.files === 1 ? "file" : "files"}` : "";
    if (files) made.append(element("div", { class: "meta" }, files));
    made.append(element("div", { class: "meta note" }));
    waiting.append(made);
  }
  made.classList.toggle("accepted", isAccepted);
  made.querySelector(".note").replaceChildren(note, ...(button ? [button] : []));
  welcome.hidden = true;
}

export function dropWaiting(clientId) {
  findWaiting(clientId)?.remove();
}

// Drops what was accepted and is no longer waiting; what was not sent yet stays.
export function dropAccepted() {
  for (const each of waiting.querySelectorAll(".accepted")) each.remove();
}

export function markStopped({ id, calls }) {
  const made = document.getElementById(`message-${id}`);
  if (made) addMark(made, true, calls);
}

// Shows that an answer is to come, as long as it would stand below its question.
export function showWork(isWorking) {
  log.classList.toggle("working", isWorking);
  let last = log.lastElementChild;
  while (last?.matches(".aside")) last = last.previousElementSibling;
  awaitAnswer(isWorking && Boolean(last?.matches(".user")));
}

export function clear() {
  log.replaceChildren();
  waiting.replaceChildren();
  clearDraft();
}

export function ready() {
  welcome.hidden = log.childElementCount + waiting.childElementCount > 0;
  log.setAttribute("aria-live", "polite"); // what was there before is not read out
}
