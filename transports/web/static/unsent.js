// Messages that have not arrived yet: the browser keeps them until they have, so that they outlive their page.

import { conversation, post, session } from "./posting.js";

const PREFIX = "unsent-";
const MOST = 20; // of a conversation
const LONGEST = 500_000; // characters of one, with its files
const LONGEST_KEPT = 2 * 24 * 3_600_000; // milliseconds: the server knows for longer what has arrived, and takes it once
const FIRST_WAIT = 1_000; // milliseconds
const LONGEST_WAIT = 15_000;

// Returns how long to wait before the next try, after the waits before it.
export function nextWait(wait = 0) {
  return wait ? Math.min(wait * 2, LONGEST_WAIT) : FIRST_WAIT;
}

// Returns whether an entry is kept: there is little room, and some browsers give none.
export function keepUnsent({ message, files, edits, isPressed }) {
  const text = JSON.stringify({ session, conversation, at: Date.now(), message, files, edits, isPressed });
  if (text.length > LONGEST || readUnsent().filter((each) => each.conversation === conversation).length >= MOST) return false;
  try {
    localStorage.setItem(PREFIX + message.client_id, text);
    return true;
  } catch {
    return false;
  }
}

// Returns whether an entry is too old to be sent without a word: it may have arrived, or be meant no more.
export function isOld({ at }) {
  return Date.now() - at > LONGEST_KEPT;
}

// Returns whether an entry was kept and is no more: sent by another page, or deleted with its conversation.
export function isGone({ message, isKept }) {
  return isKept && read(PREFIX + message.client_id) === null;
}

export function dropUnsent(clientId) {
  try {
    localStorage.removeItem(PREFIX + clientId);
  } catch {
    // not allowed: then nothing is kept
  }
}

// Returns what this person has not sent, oldest first.
export function readUnsent() {
  const mine = keysOfUnsent().map(read).filter((each) => each?.session === session);
  return mine.map((each) => ({ ...each, given: [], isKept: true })).sort((one, other) => one.at - other.at);
}

// Forgets what another person has not sent, who used this browser before.
export function forgetOthers() {
  for (const key of keysOfUnsent()) {
    if (read(key)?.session !== session) localStorage.removeItem(key);
  }
}

// Forgets what was not sent in a conversation, or in all of them.
export function forgetUnsent(name = null) {
  for (const each of readUnsent()) {
    if (name === null || each.conversation === name) dropUnsent(each.message.client_id);
  }
}

export function postUnsent({ message, files, edits, isPressed, conversation: named = conversation }) {
  const fields = { id: message.client_id, text: message.text, files, edits, is_pressed: isPressed };
  return post("/web/messages", { ...fields, conversation: named });
}

// Sends what was written in conversations that are not open, in each by itself. What is refused for good stays until its
// own is open, and so does what is old.
export function sendElsewhere(entries) {
  const fresh = entries.filter((each) => !isOld(each));
  for (const name of new Set(fresh.map((each) => each.conversation))) {
    sendInOrder(fresh.filter((each) => each.conversation === name));
  }
}

async function sendInOrder(entries) {
  for (const entry of entries) {
    for (let wait = nextWait(); !isGone(entry); wait = nextWait(wait)) {
      const answer = await postUnsent(entry);
      if (answer.ok) dropUnsent(entry.message.client_id);
      if (answer.ok) document.dispatchEvent(new CustomEvent("changed"));
      if (answer.ok || !answer.isWorthRetrying) break;
      await new Promise((resolve) => setTimeout(resolve, wait));
    }
  }
}

function keysOfUnsent() {
  try {
    return Object.keys(localStorage).filter((key) => key.startsWith(PREFIX));
  } catch {
    return [];
  }
}

function read(key) {
  try {
    return JSON.parse(localStorage.getItem(key));
  } catch {
    return null;
  }
}
