// The form that asks a question again: it says that the model is at work, and is sent once.

const form = document.querySelector("[data-asks]");
const button = form.querySelector("button");
const status = form.querySelector("[data-status]");

function show(isAsking) {
  button.disabled = isAsking;
  form.toggleAttribute("aria-busy", isAsking);
  status.textContent = isAsking ? "The model is asked. This may take a while." : "";
}

form.addEventListener("submit", () => setTimeout(() => show(true)));
// A page that comes back from the browser's memory was left while it asked.
window.addEventListener("pageshow", () => show(false));
