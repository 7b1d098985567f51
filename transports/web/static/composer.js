// Writing a message, and sending it until it has arrived.

import { decode, encode, setUpAttaching } from "./attaching.js";
import { setUpCompletion } from "./completion.js";
import { element } from "./element.js";
import { conversation, newId } from "./posting.js";
import { dropUnsent, forgetOthers, forgetUnsent, isGone, isOld, keepUnsent, readUnsent } from "./unsent.js";
import { nextWait, postUnsent, sendElsewhere } from "./unsent.js";
import { dropWaiting, showWaiting } from "./view.js";

const limits = document.body.dataset;
const maxText = Number(limits.maxText);
const BLANK = /^[\s\p{Cc}\p{Default_Ignorable_Code_Point}\u2800]*$/u; // nothing of it can be seen
const UNTIL_IT_SHOWS = 2_000; // milliseconds

export function setUpComposer({ complain, scrolling, isIdle, stop }) {
  const form = document.getElementById("composer");
  const text = document.getElementById("text");
  const send = document.getElementById("send");
  const editing = document.getElementById("editing");
  const queue = [];
  let edited = null; // the message that is written again
  let isSending = false;
  let encoding = 0; // messages whose files are being read
  const attached = setUpAttaching({ complain, onChange: update });
  const completion = setUpCompletion(text);

  function update() {
    send.disabled = BLANK.test(text.value) && attached.isEmpty();
    keepWritten(edited ? "" : text.value);
    if (!CSS.supports("field-sizing", "content")) {
      text.style.height = "auto";
      text.style.height = `${text.scrollHeight}px`;
    }
  }

  function write(words) {
    text.value = words;
    update();
  }

  async function submit() {
    const written = text.value;
    if (BLANK.test(written) && attached.isEmpty()) return;
    const length = [...written].length;
    if (length > maxText) {
      return complain(`This message has ${length.toLocaleString()} characters; at most ${maxText.toLocaleString()} can be sent at once.`);
    }
    complain("");
    completion.close();
    if (written.trim().toLowerCase() === "/stop" && !isIdle()) {
      write("");
      return stop();
    }
    const edits = edited?.isNewest ? edited.message.client_id : null;
    endEditing();
    write("");
    await enqueue(written, { files: attached.take(), edits });
  }

  async function enqueue(written, { files = [], edits = null, isPressed = false } = {}) {
    const message = { client_id: newId(), text: written, files: files.length };
    showWaiting(message, "Sending…");
    scrolling.toEnd();
    encoding += 1;
    try {
      const entry = { message, isPressed, edits, given: files, files: await Promise.all(files.map(encode)) };
      queue.push({ ...entry, isKept: keepUnsent(entry) });
    } catch {
      return giveBack({ message, given: [] }, "A file could not be read: it may be a folder, or have changed.");
    } finally {
      encoding -= 1;
    }
    if (!isSending) await drain();
  }

  // Goes on with what had not arrived when the page was left, here and in other conversations.
  function goOn() {
    forgetOthers();
    const unsent = readUnsent();
    for (const each of unsent.filter((entry) => entry.conversation === conversation)) {
      if (isOld(each)) {
        dropUnsent(each.message.client_id);
        giveBack(each, "This was written days ago, and nobody knows whether it arrived. Send it if it is still meant.");
        continue;
      }
      showWaiting(each.message, "Sending…");
      queue.push(each);
    }
    if (queue.length) drain();
    sendElsewhere(unsent.filter((entry) => entry.conversation !== conversation));
  }

  // One after the other: a message that has to be sent again is not overtaken.
  async function drain() {
    isSending = true;
    while (queue.length) {
      await deliver(queue[0]);
      queue.shift();
    }
    isSending = false;
  }

  async function deliver(entry) {
    const { message } = entry;
    for (let wait = nextWait(); ; wait = nextWait(wait)) {
      if (isGone(entry)) return dropWaiting(message.client_id);
      const answer = await postUnsent(entry);
      if (answer.ok || !answer.isWorthRetrying) dropUnsent(message.client_id);
      if (answer.ok) {
        showWaiting(message, "Waiting…", { isAccepted: true });
        // The end of a quick command may have been told before this answer: then nothing else takes the note away.
        setTimeout(() => isIdle() && dropWaiting(message.client_id), UNTIL_IT_SHOWS);
        return;
      }
      if (!answer.isWorthRetrying) return giveBack(entry, answer.error);
      await pause(message, wait);
    }
  }

  function pause(message, wait) {
    return new Promise((resolve) => {
      const now = element("button", { type: "button" }, "Try now");
      const timer = setTimeout(resolve, wait);
      now.addEventListener("click", () => (clearTimeout(timer), resolve()));
      showWaiting(message, "Not sent yet. Trying again…", { button: now });
    });
  }

  function giveBack({ message, given, files = [] }, error) {
    dropWaiting(message.client_id);
    text.value = [text.value, message.text].filter(Boolean).join("\n\n");
    attached.add(given.length ? given : files.map(decode));
    complain(error);
    update();
  }

  // The newest question is asked again in its place; an earlier one once more, as it is written now.
  async function beginEditing({ message, isNewest }) {
    const files = await Promise.all(message.files.map(fetchFile)).catch(() => null);
    if (!files) return complain("The files of this message are not there any more.");
    edited = { message, isNewest };
    editing.querySelector("p").textContent = isNewest
      ? "Editing your last question. Its answer will be made again."
      : "Editing an earlier question. It will be asked once more, below.";
    editing.hidden = false;
    attached.take();
    attached.add(files);
    write(message.text);
    text.focus();
    text.setSelectionRange(text.value.length, text.value.length);
  }

  function endEditing() {
    edited = null;
    editing.hidden = true;
  }

  function cancelEditing() {
    endEditing();
    attached.take();
    write("");
    text.focus();
  }

  function onKey(event) {
    if (completion.onKey(event)) return;
    if (event.key === "Escape" && edited) {
      event.preventDefault();
      return cancelEditing();
    }
    const isSend = event.key === "Enter" && !event.shiftKey && !event.isComposing && !matchMedia("(hover: none)").matches;
    if (!isSend) return;
    event.preventDefault();
    submit();
  }

  document.getElementById("starters")?.addEventListener("click", (event) => {
    const starter = event.target.closest("button");
    if (starter) enqueue(starter.textContent);
  });
  document.addEventListener("say", (event) => enqueue(event.detail, { isPressed: true }));
  document.addEventListener("edit", (event) => beginEditing(event.detail));
  editing.querySelector("button").addEventListener("click", cancelEditing);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
    text.focus();
  });
  text.addEventListener("input", update);
  text.addEventListener("keydown", onKey);

  document.querySelector("form[action='/web/logout']")?.addEventListener("submit", () => forgetUnsent());
  // What could not be kept is lost with the page.
  addEventListener("beforeunload", (event) => (encoding || queue.some((each) => !each.isKept)) && event.preventDefault());

  write(readWritten());
  goOn();
  if (matchMedia("(hover: hover)").matches) text.focus({ preventScroll: true }); // else it would open the keyboard
}

async function fetchFile({ url, name, mime_type: type }) {
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(name);
  const data = await answer.blob();
  return new File([data], name, { type });
}

// What was written and not sent outlives a reload, such as the one that asks to log in again.
const WRITTEN = `written-${limits.session}-${limits.conversation}`;

function keepWritten(written) {
  try {
    sessionStorage.setItem(WRITTEN, written);
  } catch {
    // too long, or not allowed: then it does not outlive it
  }
}

function readWritten() {
  try {
    return sessionStorage.getItem(WRITTEN) || "";
  } catch {
    return "";
  }
}
