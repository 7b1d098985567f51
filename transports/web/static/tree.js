// The timeline of a turn as a tree: arrow keys go through it, and beside it stands what belongs to the chosen line.
// Without it the lines are links to what stands below each other.
// https://www.w3.org/WAI/ARIA/apg/patterns/treeview/

const folded = new Set(); // by their addresses; they stay so when the page is shown again
let showsAll = false;
let chosen = null;

const itemsOf = (tree) => [...tree.querySelectorAll("a.span")];
const groupOf = (item) => item.parentElement.querySelector(":scope > ul");
const isShown = (item) => !item.closest("ul[hidden]");
const parentOf = (item) => item.closest("ul").parentElement.querySelector(":scope > a.span");

function fold(item, isFolded) {
  const group = groupOf(item);
  if (!group) return;
  group.hidden = isFolded;
  item.setAttribute("aria-expanded", String(!isFolded));
  if (isFolded) folded.add(keyOf(item));
  else folded.delete(keyOf(item));
}

// Several lines may lead to one place.
const keyOf = (item) => `${item.hash} ${item.querySelector(".label").textContent}`;

const isBeside = () => matchMedia("(min-width: 64rem)").matches;

function choose(tree, item) {
  const main = tree.closest("main");
  const target = document.getElementById(item.hash.slice(1));
  for (const each of itemsOf(tree)) {
    each.setAttribute("aria-selected", String(each === item));
    each.tabIndex = each === item ? 0 : -1;
  }
  chosen = keyOf(item);
  const pane = target?.closest("[data-pane]");
  for (const each of main.querySelectorAll("[data-pane]")) each.hidden = !showsAll && each !== pane;
  for (const each of main.querySelectorAll(".pointed")) each.classList.remove("pointed");
  if (target && target !== pane) target.classList.add("pointed");
  return target;
}

function show(tree, item) {
  const target = choose(tree, item);
  if (!isBeside()) return target?.scrollIntoView({ block: "start" });
  const isPane = target?.hasAttribute("data-pane");
  // What is read of a long step may be far below its beginning, and that of the next one, too.
  if (target && (!isPane || showsAll || target.getBoundingClientRect().top < 0)) {
    target.scrollIntoView({ block: isPane ? "start" : "nearest" });
  }
  item.scrollIntoView({ block: "nearest" });
}

function visit(tree, item) {
  history.replaceState(null, "", item.hash);
  show(tree, item);
}

function go(tree, item) {
  if (!item) return;
  history.replaceState(null, "", item.hash);
  if (isBeside()) show(tree, item);
  else choose(tree, item);
  item.focus();
}

function onKey(event) {
  const item = event.target.closest?.("a.span");
  if (!item || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
  const tree = event.currentTarget;
  const shown = itemsOf(tree).filter(isShown);
  const at = shown.indexOf(item);
  const group = groupOf(item);
  const moves = {
    ArrowDown: () => go(tree, shown[at + 1]),
    ArrowUp: () => go(tree, shown[at - 1]),
    Home: () => go(tree, shown[0]),
    End: () => go(tree, shown.at(-1)),
    ArrowRight: () => (group?.hidden ? fold(item, false) : group && go(tree, group.querySelector("a.span"))),
    ArrowLeft: () => (group && !group.hidden ? fold(item, true) : go(tree, parentOf(item))),
    " ": () => visit(tree, item),
  };
  if (!Object.hasOwn(moves, event.key)) return;
  event.preventDefault();
  moves[event.key]();
}

function onClick(event) {
  const item = event.target.closest("a.span");
  if (!item || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  if (event.target.closest(".twist")) fold(item, !groupOf(item).hidden);
  else visit(event.currentTarget, item);
}

export function prepareTree(main) {
  const tree = main.querySelector("[data-tree]");
  if (!tree) return;
  tree.setAttribute("role", "tree");
  tree.setAttribute("aria-labelledby", "timeline");
  for (const each of tree.querySelectorAll("li")) each.setAttribute("role", "none");
  for (const [number, item] of itemsOf(tree).entries()) {
    item.setAttribute("role", "treeitem");
    const group = groupOf(item);
    if (!group) continue;
    group.setAttribute("role", "group");
    group.id = `group-${number}`;
    item.setAttribute("aria-owns", group.id);
    fold(item, folded.has(keyOf(item)));
  }
  tree.addEventListener("keydown", onKey);
  tree.addEventListener("click", onClick);
  const all = main.querySelector("[data-all]");
  all.hidden = false;
  all.setAttribute("aria-pressed", String(showsAll));
  all.addEventListener("click", () => {
    showsAll = !showsAll;
    all.setAttribute("aria-pressed", String(showsAll));
    choose(tree, tree.querySelector("[aria-selected=true]") ?? itemsOf(tree)[0]);
  });
  const items = itemsOf(tree);
  const wanted = items.find((each) => keyOf(each) === chosen) ?? items.find((each) => each.hash === location.hash);
  (chosen === null && wanted ? show : choose)(tree, wanted ?? items[0]);
}
