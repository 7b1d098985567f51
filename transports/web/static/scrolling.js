// The page stays at its end while one reads there, and nowhere else.

const NEAR = 80; // pixels

export function setUpScrolling() {
  const scroll = document.getElementById("scroll");
  const newest = document.getElementById("newest");
  let isAtEnd = true;

  function toEnd() {
    scroll.scrollTop = scroll.scrollHeight;
    isAtEnd = true;
    newest.hidden = true;
  }

  scroll.addEventListener("scroll", () => {
    isAtEnd = scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight < NEAR;
    if (isAtEnd) newest.hidden = true;
  });
  newest.addEventListener("click", toEnd);
  new ResizeObserver(() => isAtEnd && toEnd()).observe(scroll);
  new ResizeObserver(() => isAtEnd && toEnd()).observe(scroll.firstElementChild);

  return {
    toEnd,
    to(element) {
      isAtEnd = false;
      newest.hidden = false; // until the end is seen
      element.scrollIntoView({ block: "center" });
    },
    keep(change) {
      const before = scroll.scrollHeight;
      change();
      if (isAtEnd) toEnd();
      else if (scroll.scrollHeight > before) newest.hidden = false;
    },
    keepFromBottom(change) {
      const fromBottom = scroll.scrollHeight - scroll.scrollTop;
      change();
      scroll.scrollTop = scroll.scrollHeight - fromBottom;
    },
  };
}
