// Files that are to go with a message: picked, pasted or dropped; what does not fit is named before anything is sent.

import { icon } from "./icons.js";
import { element } from "./element.js";

const IMAGES = ["image/png", "image/jpeg", "image/gif", "image/webp"];
const maxFiles = Number(document.body.dataset.maxFiles);
const maxBytes = Number(document.body.dataset.maxFilesBytes);

function sizeOf(bytes) {
  if (bytes < 1e3) return `${bytes} B`;
  return bytes < 1e6 ? `${Math.round(bytes / 1e3)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}

function previewOf(file) {
  if (!IMAGES.includes(file.type)) return chipOf(file);
  const address = URL.createObjectURL(file);
  const image = element("img", { src: address, alt: file.name });
  image.addEventListener("load", () => URL.revokeObjectURL(address));
  image.addEventListener("error", () => image.replaceWith(chipOf(file)));
  return image;
}

function chipOf(file) {
  const name = element("bdi", {}, file.name);
  return element("span", { class: "chip" }, icon("file"), element("span", {}, name, element("small", {}, sizeOf(file.size))));
}

export function setUpAttaching({ complain, onChange }) {
  const previews = document.getElementById("previews");
  const limits = document.getElementById("limits");
  let files = [];

  function show() {
    previews.replaceChildren(...files.map(itemOf));
    limits.hidden = files.length === 0;
    onChange();
  }

  function itemOf(file) {
    const remove = element("button", { type: "button", "aria-label": `Remove ${file.name}` }, "×");
    remove.addEventListener("click", () => {
      files = files.filter((each) => each !== file);
      show();
      document.getElementById("text").focus();
    });
    return element("li", {}, previewOf(file), remove);
  }

  // Returns why a file does not go with the others; "" where it does.
  function refusalOf(file) {
    const bytes = files.reduce((sum, each) => sum + each.size, file.size);
    if (file.size === 0) return `${file.name} is empty, or a folder.`;
    if (files.length >= maxFiles) return `${file.name} is one too many: at most ${maxFiles} files can be sent at once.`;
    if (bytes > maxBytes) return `${file.name} has ${sizeOf(file.size)}: files may have ${maxBytes / 1e6} MB together.`;
    return "";
  }

  function add(added) {
    const refused = [];
    for (const file of added) {
      const why = refusalOf(file);
      if (why) refused.push(why);
      else files.push(file);
    }
    complain(refused.join(" "));
    show();
  }

  function take() {
    const taken = files;
    files = [];
    show();
    return taken;
  }

  listen(add);
  return { add, take, isEmpty: () => files.length === 0 };
}

function listen(add) {
  const text = document.getElementById("text");
  const picker = document.getElementById("files");
  const composer = document.getElementById("composer");
  text.addEventListener("paste", (event) => {
    const files = [...event.clipboardData.files];
    if (!files.length) return;
    event.preventDefault();
    add(files);
  });
  picker.addEventListener("change", () => {
    add([...picker.files]);
    picker.value = "";
    text.focus();
  });
  // Anywhere on the page: a browser would open what is dropped beside the field, and the chat would be gone.
  document.addEventListener("dragover", (event) => {
    if (!event.dataTransfer.types.includes("Files")) return;
    event.preventDefault();
    composer.classList.add("dropping");
  });
  document.addEventListener("dragleave", (event) => event.relatedTarget || composer.classList.remove("dropping"));
  document.addEventListener("drop", (event) => {
    if (!event.dataTransfer.types.includes("Files")) return;
    event.preventDefault();
    composer.classList.remove("dropping");
    add([...event.dataTransfer.files]);
  });
}

export async function encode(file) {
  const address = await new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.addEventListener("load", () => resolve(reader.result));
    reader.addEventListener("error", () => reject(reader.error));
    reader.readAsDataURL(file);
  });
  return { name: file.name, mime_type: file.type, data: address.slice(address.indexOf(",") + 1) };
}

export function decode({ name, mime_type: type, data }) {
  return new File([Uint8Array.from(atob(data), (byte) => byte.charCodeAt(0))], name, { type });
}
