// Arrow keys walk the heat map, and what an hour holds is said below it. Without this script its cells have titles.
let at = null;

function cells(map) {
  return [...map.tBodies[0].rows].map((row) => [...row.querySelectorAll("td[data-level]")]);
}

function tell(cell) {
  const said = document.getElementById("heat-said");
  if (said && cell?.title) said.textContent = cell.title;
}

function mark(cell) {
  at?.removeAttribute("data-here");
  at = cell;
  cell?.setAttribute("data-here", "");
  tell(cell);
}

document.addEventListener("pointerover", (event) => {
  const cell = event.target.closest?.(".heat__map td[data-level]");
  if (cell) mark(cell);
});

document.addEventListener("keydown", (event) => {
  const box = event.target.closest?.(".heat");
  const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
  if (!box || !step || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  const rows = cells(box.querySelector("table"));
  const row = rows.findIndex((each) => each.includes(at));
  if (row < 0) return mark(rows[0].find((each) => !each.hasAttribute("data-past")) ?? rows[0][0]);
  const column = rows[row].indexOf(at);
  const next = rows[row + step[0]]?.[column + step[1]];
  if (next) {
    mark(next);
    next.scrollIntoView({ block: "nearest", inline: "nearest" });
  }
});
