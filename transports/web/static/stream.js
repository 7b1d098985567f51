// Following the service's events, again and again, from where the page has them.

import { conversation } from "./posting.js";

const STORED = ["reset", "earlier", "message", "notice", "waiting", "stopped", "state", "trouble"];
const NAMES = [...STORED, "draft", "blocks", "calls", "progress", "draft_end"];
const LONGEST_WAIT = 15_000; // milliseconds
const HIDDEN_FOR = 30_000; // a page that nobody sees lets go of its connection

export function follow({ isAwaited, onEvent, onConnection, onRefused }) {
  let source = null;
  let lastId = "";
  let wait = 500;
  let again = 0;

  function connect() {
    clearTimeout(again);
    source?.close();
    const after = lastId ? `&after=${encodeURIComponent(lastId)}` : "";
    source = new EventSource(`/web/events?conversation=${conversation}${after}`);
    source.addEventListener("open", () => {
      wait = 500;
      onConnection(true);
    });
    source.addEventListener("error", reconnect);
    for (const name of NAMES) {
      source.addEventListener(name, (event) => {
        if (event.lastEventId) lastId = event.lastEventId;
        onEvent(name, JSON.parse(event.data));
      });
    }
  }

  function reconnect() {
    source.close();
    onConnection(false);
    again = setTimeout(attempt, wait * (0.75 + Math.random() / 2));
    wait = Math.min(wait * 2, LONGEST_WAIT);
  }

  // An EventSource does not say why it was refused: ask, before it is tried again.
  async function attempt() {
    try {
      const answer = await fetch("/web/events", { method: "HEAD" });
      if (answer.status === 401) return location.reload();
      if (answer.status === 403 || answer.status === 404 || answer.status === 409) {
        return onRefused("This chat can no longer be reached from here. Reload the page.");
      }
    } catch {
      // still no connection: connect() finds out, and waits longer
    }
    connect();
  }

  let sleeping = 0;
  function sleepSoon() {
    sleeping = setTimeout(() => {
      if (isAwaited()) return sleepSoon();
      clearTimeout(again);
      source.close();
    }, HIDDEN_FOR);
  }
  document.addEventListener("visibilitychange", () => {
    clearTimeout(sleeping);
    if (document.hidden) sleepSoon();
    else if (source.readyState === EventSource.CLOSED) connect();
  });
  addEventListener("online", () => source.readyState === EventSource.CLOSED && connect());
  addEventListener("pageshow", (event) => event.persisted && connect());

  connect();
}
