// Writing a message, and sending it until it has arrived.

import { newId, post } from "./posting.js";
import { dropWaiting, element, showWaiting } from "./view.js";

const limits = document.body.dataset;
const maxText = Number(limits.maxText);
const maxImages = Number(limits.maxImages);
const maxImagesBytes = Number(limits.maxImagesBytes);
const IMAGES = ["image/png", "image/jpeg", "image/gif", "image/webp"];
const FIRST_WAIT = 1_000; // milliseconds
const LONGEST_WAIT = 15_000;
const UNTIL_IT_SHOWS = 2_000;

export function setUpComposer({ complain, scrolling, isIdle, stop }) {
  const form = document.getElementById("composer");
  const text = document.getElementById("text");
  const send = document.getElementById("send");
  const previews = document.getElementById("previews");
  const picker = document.getElementById("images");
  const queue = [];
  let images = [];
  let isSending = false;

  function update() {
    send.disabled = !text.value.trim() && images.length === 0;
    keepWritten(text.value);
    if (!CSS.supports("field-sizing", "content")) {
      text.style.height = "auto";
      text.style.height = `${text.scrollHeight}px`;
    }
  }

  function showPreviews() {
    previews.replaceChildren(
      ...images.map((file) => {
        const address = URL.createObjectURL(file);
        const image = element("img", { src: address, alt: file.name });
        image.addEventListener("load", () => URL.revokeObjectURL(address));
        const remove = element("button", { type: "button", "aria-label": `Remove ${file.name}` }, "×");
        remove.addEventListener("click", () => {
          images = images.filter((each) => each !== file);
          showPreviews();
          text.focus();
        });
        return element("li", {}, image, remove);
      }),
    );
    update();
  }

  function addImages(files) {
    const added = [...images, ...files];
    const bytes = added.reduce((sum, file) => sum + file.size, 0);
    if (added.some((file) => !IMAGES.includes(file.type))) return complain("Only PNG, JPEG, GIF and WebP images can be sent.");
    if (added.length > maxImages) return complain(`At most ${maxImages} images can be sent at once.`);
    if (bytes > maxImagesBytes) return complain(`Images may have ${maxImagesBytes / 1e6} MB together.`);
    complain("");
    images = added;
    showPreviews();
  }

  async function submit() {
    const written = text.value;
    if (!written.trim() && images.length === 0) return;
    const length = [...written].length;
    if (length > maxText) {
      return complain(`This message has ${length.toLocaleString()} characters; at most ${maxText.toLocaleString()} can be sent at once.`);
    }
    complain("");
    if (written.trim().toLowerCase() === "/stop" && !isIdle()) {
      text.value = "";
      update();
      return stop();
    }
    const files = images;
    text.value = "";
    images = [];
    showPreviews();
    await enqueue(written, files);
  }

  async function enqueue(written, files = [], isPressed = false) {
    const message = { client_id: newId(), text: written, images: files.length };
    showWaiting(message, "Sending…");
    scrolling.toEnd();
    queue.push({ message, isPressed, images: await Promise.all(files.map(encode)) });
    if (!isSending) await drain();
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
    for (let wait = FIRST_WAIT; ; wait = Math.min(wait * 2, LONGEST_WAIT)) {
      const answer = await post("/web/messages", {
        id: message.client_id,
        text: message.text,
        images: entry.images,
        is_pressed: entry.isPressed,
      });
      if (answer.ok) {
        showWaiting(message, "Waiting…", { isAccepted: true });
        // The end of a quick command may have been told before this answer: then nothing else takes the note away.
        setTimeout(() => isIdle() && dropWaiting(message.client_id), UNTIL_IT_SHOWS);
        return;
      }
      if (!answer.isWorthRetrying) return giveBack(message, answer.error);
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

  function giveBack(message, error) {
    dropWaiting(message.client_id);
    if (!text.value) text.value = message.text;
    complain(error);
    update();
  }

  document.addEventListener("say", (event) => enqueue(event.detail, [], true));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
    text.focus();
  });
  text.addEventListener("input", update);
  text.addEventListener("keydown", (event) => {
    const isSend = event.key === "Enter" && !event.shiftKey && !event.isComposing && !matchMedia("(hover: none)").matches;
    if (!isSend) return;
    event.preventDefault();
    submit();
  });
  text.addEventListener("paste", (event) => {
    const files = [...event.clipboardData.files];
    if (!files.length) return;
    event.preventDefault();
    addImages(files);
  });
  picker.addEventListener("change", () => {
    addImages([...picker.files]);
    picker.value = "";
    text.focus();
  });
  form.addEventListener("dragover", (event) => {
    event.preventDefault();
    form.classList.add("dropping");
  });
  form.addEventListener("dragleave", () => form.classList.remove("dropping"));
  form.addEventListener("drop", (event) => {
    event.preventDefault();
    form.classList.remove("dropping");
    addImages([...event.dataTransfer.files]);
  });

  text.value = readWritten();
  update();
  if (matchMedia("(hover: hover)").matches) text.focus({ preventScroll: true }); // else it would open the keyboard
}

// What was written and not sent outlives a reload, such as the one that asks to log in again.
const WRITTEN = `written-${limits.session}`;

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

async function encode(file) {
  const address = await new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.addEventListener("load", () => resolve(reader.result));
    reader.addEventListener("error", () => reject(reader.error));
    reader.readAsDataURL(file);
  });
  return { name: file.name, mime_type: file.type, data: address.slice(address.indexOf(",") + 1) };
}
