// Times as the reader's clock and calendar have them.

import { element } from "./element.js";

const clock = new Intl.DateTimeFormat(undefined, { hour: "numeric", minute: "2-digit" });
const date = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
const dateOfAnotherYear = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", year: "numeric" });
const full = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "medium" });
const near = new Intl.RelativeTimeFormat(document.documentElement.lang, { numeric: "auto" });
const DAY = 24 * 60 * 60 * 1000; // milliseconds
// Times in messages of 1.0.0 and in errors: in UTC, which stands behind the last of them in its sentence.
const WRITTEN = /(\d{4}-\d\d-\d\d) (\d\d:\d\d)(?: ?[(（]UTC[)）]| UTC)?/g;

function midnightOf(moment) {
  return new Date(moment.getFullYear(), moment.getMonth(), moment.getDate());
}

// Returns the day in words: today, yesterday, tomorrow, or its date.
export function dayOf(moment) {
  const now = new Date();
  const days = Math.round((midnightOf(moment) - midnightOf(now)) / DAY);
  if (Math.abs(days) <= 1) return near.format(days, "day");
  return (moment.getFullYear() === now.getFullYear() ? date : dateOfAnotherYear).format(moment);
}

function isToday(moment) {
  return moment.toDateString() === new Date().toDateString();
}

function inWords(moment) {
  return isToday(moment) ? clock.format(moment) : `${dayOf(moment)}, ${clock.format(moment)}`;
}

function wordsOf(moment) {
  return element("time", { datetime: moment.toISOString(), title: full.format(moment) }, inWords(moment));
}

function capital(text) {
  return text.charAt(0).toLocaleUpperCase() + text.slice(1);
}

export function timeOf(at) {
  const moment = new Date(at);
  return element("time", { datetime: at, title: full.format(moment) }, capital(inWords(moment)));
}

// Returns the day of what stands in a list; of today, the hour.
export function listedTimeOf(at) {
  const moment = new Date(at);
  const text = isToday(moment) ? clock.format(moment) : capital(dayOf(moment));
  return element("time", { datetime: at, title: full.format(moment) }, text);
}

// Writes the times that the service itself names as the reader's own. Code, which shows arguments, stays as it is.
export function withLocalTimes(body) {
  for (const time of body.querySelectorAll("time[datetime]")) {
    const moment = new Date(time.getAttribute("datetime"));
    if (!Number.isNaN(moment.getTime())) time.replaceWith(wordsOf(moment));
  }
  const walker = document.createTreeWalker(body, NodeFilter.SHOW_TEXT);
  const found = [];
  while (walker.nextNode()) {
    const node = walker.currentNode;
    if (node.data.includes("UTC") && !node.parentElement.closest("pre, code, time")) found.push(node);
  }
  for (const node of found) node.replaceWith(...partsOf(node.data));
  return body;
}

function partsOf(text) {
  const parts = [];
  let end = 0;
  for (const match of text.matchAll(WRITTEN)) {
    const moment = new Date(`${match[1]}T${match[2]}Z`);
    if (Number.isNaN(moment.getTime())) continue;
    parts.push(text.slice(end, match.index), wordsOf(moment));
    end = match.index + match[0].length;
  }
  return [...parts, text.slice(end)];
}
