// Says short things to those who hear the page.

const said = document.getElementById("said");

export function announce(text) {
  said.textContent = "";
  requestAnimationFrame(() => (said.textContent = text)); // else the same words are not said twice
}
