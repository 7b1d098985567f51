// Why an answer is as it is, in a dialog; for whoever may see the inspector, with the way to its turn there.

import { conversation } from "./posting.js";
import { withLocalTimes } from "./times.js";

const dialog = document.getElementById("why");
const text = document.getElementById("why-text");
const inspected = document.getElementById("why-inspect");

export async function showWhy(id, button, complain) {
  const answer = await fetch(`/web/why?conversation=${conversation}&message=${id}`).catch(() => null);
  const said = await answer?.json().catch(() => ({}));
  if (!answer?.ok) return complain(said?.error || "There is no connection to the service.");
  if (said.html === null) text.textContent = said.text;
  else text.innerHTML = said.html; // made by the server from markdown, in which nothing of others is markup
  withLocalTimes(text);
  inspected.href = said.inspect;
  inspected.hidden = !document.querySelector('header a[href="/inspect"]');
  dialog.addEventListener("close", () => button.focus(), { once: true });
  dialog.showModal();
}
