// Keeps parts of a page up to date while something runs, offers to copy, explains labels, and lets
// tables fit on phones. Pages work without it.

const EVERY_MS = 3000;
// Whoever uses the keyboard keeps the page as it is for so long.
const UNTOUCHED_MS = 10000;
let pressedAt = -UNTOUCHED_MS;
// The parts as they came, before times were put into the reader's zone.
const served = new Map();

// Parts with `data-live` are fetched again, and those that have changed are replaced.
async function update() {
  const parts = document.querySelectorAll("[data-live]");
  if (document.hidden || isInUse() || !parts.length) return;
  const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
  if (!answer.ok || answer.redirected) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  if (isInUse()) return;
  for (const part of parts) {
    const next = fresh.getElementById(part.id);
    const hasFocus = part.contains(document.activeElement);
    if (!next || hasFocus || next.innerHTML === served.get(part.id)) continue;
    served.set(part.id, next.innerHTML);
    part.replaceWith(next);
  }
  inLocalTime();
  offerCopies();
  stackWideTables();
}

// Whoever selects text, or has just pressed a key, is not interrupted.
function isInUse() {
  return !getSelection().isCollapsed || performance.now() - pressedAt < UNTOUCHED_MS;
}

// The exact time of each moment is also shown in the reader's own zone.
function inLocalTime() {
  for (const one of document.querySelectorAll("time[datetime]")) {
    const at = new Date(one.dateTime);
    if (!one.dataset.local) {
      one.dataset.local = "yes";
      one.title += `, here ${at.toLocaleString()}`;
    }
  }
}

function offerCopies() {
  if (!navigator.clipboard) return;
  for (const one of document.querySelectorAll("[data-copy]:not(:has(button))")) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Copy";
    button.setAttribute("aria-label", `Copy: ${one.dataset.copy}`);
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(one.dataset.text ?? one.querySelector("code").textContent);
      button.textContent = "Copied";
    });
    one.append(button);
  }
}

// Labels explain themselves when they are pointed at or have the focus; Escape hides the text, and
// the pointer may move onto it.
const tip = document.createElement("div");
tip.id = "tip";
tip.role = "tooltip";
tip.hidden = true;
document.body.append(tip);
let explained = null;

function explain(label) {
  if (label === explained) return;
  hideTip();
  explained = label;
  tip.textContent = label.title;
  label.removeAttribute("title");
  label.setAttribute("aria-describedby", tip.id);
  tip.hidden = false;
  const [of, own] = [label.getBoundingClientRect(), tip.getBoundingClientRect()];
  const below = of.bottom + own.height < innerHeight;
  tip.style.left = `${Math.max(8, Math.min(of.left, innerWidth - own.width - 8))}px`;
  tip.style.top = `${below ? of.bottom : of.top - own.height}px`;
}

function hideTip() {
  if (!explained) return;
  explained.title = tip.textContent;
  explained.removeAttribute("aria-describedby");
  explained = null;
  tip.hidden = true;
}

function followPointer({ target }) {
  const label = target.closest?.(".term, .sort[title], #tip");
  if (!label) hideTip();
  else if (label !== tip) explain(label);
}

// On a phone, each row of a table that is too wide becomes a block, in which every value has the name
// of its column beside it.
function stackWideTables() {
  for (const table of document.querySelectorAll("main table")) {
    table.classList.remove("stacked");
    if (table.offsetWidth <= table.parentElement.clientWidth) continue;
    const names = [...(table.tHead?.rows[0].cells ?? [])].map(nameOf);
    for (const row of [...table.tBodies].flatMap((body) => [...body.rows])) {
      let at = 0;
      for (const cell of row.cells) {
        if (cell.colSpan === 1 && names[at]) cell.dataset.column = names[at];
        at += cell.colSpan;
      }
    }
    table.classList.add("stacked");
  }
}

// A column's name, without the arrow of the order.
function nameOf(header) {
  const copy = header.cloneNode(true);
  for (const one of copy.querySelectorAll(".hidden, [aria-hidden]")) one.remove();
  return copy.textContent.trim();
}

for (const part of document.querySelectorAll("[data-live]")) served.set(part.id, part.innerHTML);
addEventListener("keydown", ({ key }) => {
  pressedAt = performance.now();
  if (key === "Escape") hideTip();
});
addEventListener("pointerover", followPointer);
addEventListener("focusin", followPointer);
addEventListener("focusout", hideTip);
addEventListener("scroll", hideTip, true);
inLocalTime();
offerCopies();
stackWideTables();
addEventListener("resize", stackWideTables);
setInterval(() => update().catch(() => {}), EVERY_MS);
