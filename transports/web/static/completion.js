// Commands are completed while one is written, from a list. The field stays a text field of several lines: it may not be
// called a combobox (ARIA in HTML), but may have a list and an option in it that is active (WAI-ARIA, textbox).

const list = document.getElementById("completions");
const BEGUN = /^\/([a-z0-9_]*)$/i;

let commands = null;

async function load() {
  if (commands) return commands;
  const answer = await fetch("/web/commands").catch(() => null);
  if (!answer?.ok) return [];
  commands = (await answer.json()).commands;
  return commands;
}

function optionOf(command, index) {
  const made = document.createElement("li");
  const name = document.createElement("b");
  const about = document.createElement("span");
  made.id = `completion-${index}`;
  made.setAttribute("role", "option");
  made.dataset.name = command.name;
  name.textContent = `/${command.name}`;
  about.textContent = command.about;
  made.append(name, " ", about);
  return made;
}

export function setUpCompletion(text) {
  let chosen = 0;

  function close() {
    list.hidden = true;
    for (const name of ["aria-haspopup", "aria-controls", "aria-autocomplete", "aria-activedescendant"]) {
      text.removeAttribute(name);
    }
  }

  function choose(index) {
    const options = [...list.children];
    chosen = (index + options.length) % options.length;
    options.forEach((each, at) => each.setAttribute("aria-selected", String(at === chosen)));
    options[chosen].scrollIntoView({ block: "nearest" });
    text.setAttribute("aria-activedescendant", options[chosen].id);
  }

  function take(option) {
    text.value = `/${option.dataset.name} `;
    close();
    text.dispatchEvent(new Event("input"));
    text.focus();
  }

  async function update() {
    const begun = BEGUN.exec(text.value);
    if (!begun) return close();
    const known = await load();
    if (BEGUN.exec(text.value)?.[0] !== begun[0]) return; // the person wrote on meanwhile
    const fitting = known.filter((each) => each.name.startsWith(begun[1].toLowerCase()));
    if (!fitting.length) return close();
    list.replaceChildren(...fitting.map(optionOf));
    list.hidden = false;
    text.setAttribute("aria-haspopup", "listbox");
    text.setAttribute("aria-controls", list.id);
    text.setAttribute("aria-autocomplete", "list");
    choose(0);
  }

  // Returns whether the key was for the list.
  function onKey(event) {
    if (list.hidden || event.isComposing) return false;
    const option = list.children[chosen];
    const isWhole = text.value.toLowerCase() === `/${option.dataset.name}`;
    if (event.key === "ArrowDown") choose(chosen + 1);
    else if (event.key === "ArrowUp") choose(chosen - 1);
    else if (event.key === "Escape") close();
    else if (event.key === "Tab" && !event.shiftKey) take(option);
    else if (event.key === "Enter" && !event.shiftKey && !isWhole) take(option);
    else return false;
    event.preventDefault();
    return true;
  }

  text.addEventListener("input", update);
  text.addEventListener("blur", close);
  list.addEventListener("pointerdown", (event) => event.preventDefault()); // the field keeps the focus
  list.addEventListener("click", (event) => {
    const option = event.target.closest("[role=option]");
    if (option) take(option);
  });
  return { onKey, close };
}
